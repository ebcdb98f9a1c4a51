"""An HTTP client that costs next to nothing, so that what is measured is the service: the request is one packet, and of
the answer only its length is understood."""

import socket
from types import TracebackType


class LeanConnection:
    """One connection, kept open; requests one after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "LeanConnection":
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
        """The bytes of a request, to be given to `exchange`."""
        given = {"Host": self._host, "Content-Length": str(len(body)), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Sends it, and returns the answer's status and body."""
        self._socket.sendall(request)
        received = b""
        while True:
            received += self._socket.recv(65_536)
            head, blank, body = received.partition(b"\r\n\r\n")
            if blank and len(body) >= content_length(head):
                return int(head[9:12]), body


def content_length(head: bytes) -> int:
    """From the head of an answer, which has one."""
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[start:].split(b"\r\n", 1)[0])
