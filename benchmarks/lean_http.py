"""An HTTP client with minimal overhead, so that the service is measured: the request is one packet, and of the
response only its length is parsed."""

import socket
from types import TracebackType


class LeanConnection:
    """One persistent connection, with one request after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "LeanConnection":
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
        """The bytes of a request, for `exchange`."""
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
    """From the head of a response, which must have it."""
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[start:].split(b"\r\n", 1)[0])
