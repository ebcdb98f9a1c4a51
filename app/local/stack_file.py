"""`stack.json`: the addresses and credentials of a running stack, for scripts and the command line."""

from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from app.local.files import write_private

NAME = "stack.json"
_LAST_NAME = "stack.last.json"


class StackHost(msgspec.Struct, frozen=True, kw_only=True):
    """An engine host of the stack. `admin_dsn` is its full administrator's; the service uses one with fewer rights."""

    engine: str
    region: str
    host: str
    port: int
    admin_dsn: str
    flavour: str | UnsetType = UNSET
    """`mysql` or `mariadb`; only for a MySQL host."""


class StackFile(msgspec.Struct, frozen=True, kw_only=True):
    """A stack that is ready. `control_dsn` is our own database for the role with which the service logs in to it,
    `control_admin_dsn` the same for the owner of the tables. `processes` maps each service's name to its process ids.
    Scripts read this file: its fields are a contract."""

    api_url: str
    api_key: str
    temporal_address: str
    temporal_namespace: str
    temporal_ui_url: str
    control_dsn: str
    hosts: list[StackHost]
    processes: dict[str, list[int]]
    control_admin_dsn: str = ""
    """Empty in the file of a stack of 0.1.0, of which the next start reads the ports and the key."""
    absent_hosts: list[StackHost] | UnsetType = UNSET
    """Only where there are any: hosts of earlier stacks whose region or engine this one leaves out. Their ports are
    kept for them."""

    def known_hosts(self) -> list[StackHost]:
        """The hosts, and those that are left out: one for each engine and region."""
        return self.hosts if self.absent_hosts is UNSET else [*self.hosts, *self.absent_hosts]


def write(home: Path, stack: StackFile) -> None:
    """Writes the file, readable only by its owner."""
    write_private(home / NAME, _encode(stack))


def remember(home: Path, stack: StackFile) -> None:
    """Stores this stack's addresses for the next start, before it is ready: scripts don't read this file."""
    write_private(home / _LAST_NAME, _encode(stack))


def withdraw(home: Path) -> None:
    """Renames the file while no stack is ready, because scripts may rely on it. The next start can still read it."""
    if (home / NAME).exists():
        (home / NAME).replace(home / _LAST_NAME)


def read(home: Path) -> StackFile | None:
    """The running stack's file, if there is a readable one."""
    return _read(home / NAME)


def read_last(home: Path) -> StackFile | None:
    """The file of the last stack that was ready here, or at least registered its hosts."""
    return _read(home / NAME) or _read(home / _LAST_NAME)


def _encode(stack: StackFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(stack), indent=2) + b"\n"


def _read(path: Path) -> StackFile | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StackFile)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
