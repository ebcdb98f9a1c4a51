"""Errors of engine hosts, whichever the engine."""

from collections.abc import Iterator
from contextlib import contextmanager

MAX_MESSAGE = 2000
"""The maximum of shown characters of a server's message: a tenant may write a megabyte into one."""


def shortened(message: str, most: int = MAX_MESSAGE) -> str:
    """A server's message, shortened for display."""
    return message if len(message) <= most else message[:most] + "…"


class EngineError(Exception):
    """An engine refused or could not be asked. The tree:

    EngineError             the engine answered with an error; another attempt may succeed
    ├── HostUnavailable     nobody answers, or the host takes no connection: another host may serve
    ├── HostFull            it lacks room or memory for the data that it is to take
    ├── NameTaken           the name exists and is not ours: never touch it, take another name
    ├── LoginRefused        the tenant's own credentials were refused
    │   └── CredentialsRefused  its account was changed: another password, or a setting of its own
    ├── TenantFull          the tenant itself holds all its sessions
    │   └── ServerFull      or the server has none left
    ├── ResponseTooLarge    the response was cut off at its limit
    ├── StatementFailed     the server refused one statement of a tenant's script
    └── StatementUncertain  nobody knows whether a statement took effect
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The engine's code, an SQLSTATE or a MySQL error number, if there is one."""


class HostUnavailable(EngineError):
    """The host can't be reached, is starting, shutting down, out of connections or out of disk."""


class HostFull(EngineError):
    """The host says, in the middle of a load, that it lacks room on its disk, or memory. A tenant's function can make
    it say so, and so no other host is taken because of it."""


class NameTaken(EngineError):
    """A database or role of this name exists with another marker, or none."""


class LoginRefused(EngineError):
    """The tenant's credentials are refused."""


class CredentialsRefused(LoginRefused):
    """The account refuses its original password, or a setting ends each of its logins. A tenant can change both;
    `EngineAdapter.restore_credentials` undoes it."""


class TenantFull(EngineError):
    """All sessions of the tenant are in use. Its credentials were accepted."""


class ServerFull(TenantFull):
    """The server has no session left for anybody, which it says before it looks at the credentials."""


@contextmanager
def accepted_when_full() -> Iterator[None]:
    """For a block that logs in to prove credentials: those of a tenant whose sessions are all in use were accepted.
    Raises `HostUnavailable` where the whole server is full, which proves nothing."""
    try:
        yield
    except ServerFull as full:
        raise HostUnavailable(str(full), code=full.code) from full
    except TenantFull:
        pass


class StatementFailed(EngineError):
    """The server refused a statement of a script. The message is the server's, for the author of the script; it may
    quote data."""

    def __init__(
        self, message: str, *, code: str | None = None, position: int | None = None, wants_data: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.position = position
        """The position of the error in characters of the statement, if the server reports it."""
        self.wants_data = wants_data
        """Whether it may have failed for lack of data, such as a row that another refers to."""


class StatementUncertain(EngineError):
    """A statement was stopped, or its session was lost, and nobody knows whether it took effect."""


MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""The limit in bytes for statements of ours on a host: lists of a host's tenants, or of one tenant's objects."""
MAX_TENANT_RESPONSE_BYTES = 64 * 1024 * 1024
"""The limit in bytes for statements of the tenant, which reads what it has written."""


class ResponseTooLarge(EngineError):
    """The connection was cut because the response exceeded its limit. The statement's effects remain."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The answer is larger than {most} octets.")
