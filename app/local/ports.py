"""TCP ports on the loopback interface: checking and choosing free ones."""

import socket

LOOPBACK = "127.0.0.1"


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


class PortAllocator:
    """Allocates ports, each only once: services get theirs long before they listen."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def allocate(self, preferred: int | None = None) -> int:
        """The preferred port if it is free and not allocated yet, else any free one."""
        port = preferred
        while port is None or port in self._given or not is_free(port):
            port = free_port()
        self._given.add(port)
        return port
