"""TCP ports on the loopback interface: checking and choosing free ones."""

import os
import socket
import sys
from collections.abc import Iterator, Set
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LISTENS = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""
_EVERY_INTERFACE = {4: ("0.0.0.0", "::"), 6: ("::",)}  # noqa: S104 - looked for
"""For each IP version, the addresses of listening sockets that are reached by every address of that version."""


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set it too: a port with connections in TIME_WAIT can be listened on again.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that nobody listens on now. Nothing reserves it until the caller's server has bound it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_taken_by_others(host: str, port: int, group: int) -> bool:
    """Whether a process that is not in this process group listens where connections to this host arrive. Where the
    system doesn't tell (only Linux does, of processes that we may look at), no other process counts as listening."""
    sockets = set(_listening(host, port))
    for pid in _members(group) if sockets else ():
        try:
            sockets.difference_update(file.readlink().name for file in Path(f"/proc/{pid}/fd").iterdir())
        except FileNotFoundError:  # it, or one of its files, was closed meanwhile
            continue
        except PermissionError:
            return False
    return bool(sockets)


def _listening(host: str, port: int) -> Iterator[str]:
    """The sockets that listen there, each as `/proc` shows it among a process's files."""
    # On one port there may be a server for each address.
    own = {str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    every = {address for one in own for address in _EVERY_INTERFACE[ip_address(one).version]}
    addresses = {f"{_as_listed(address)}:{port:04X}" for address in own | every}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(FileNotFoundError), open(table) as lines:
            next(lines)
            for line in lines:
                fields = line.split()
                if fields[3] != _LISTENS:  # those that listen come first, before thousands of connections
                    break
                if fields[1] in addresses:
                    yield f"socket:[{fields[9]}]"


def _as_listed(address: str) -> str:
    """An address as those files have it: each four bytes as one number of the machine's."""
    packed = ip_address(address).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _members(group: int) -> Iterator[int]:
    for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == group:
                yield pid


class PortAllocator:
    """Allocates ports, each only once: services get theirs long before they listen."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def allocate(self, preferred: int | None = None, reserved: Set[int] = frozenset()) -> int:
        """The preferred port if it is free and not allocated yet, else any free one. None of the reserved ones."""
        port = preferred
        while port is None or port in self._given or port in reserved or not is_free(port):
            port = free_port()
        self._given.add(port)
        return port
