"""`python -m benchmarks.load URL SECONDS CONNECTIONS KEY…`: sends requests as fast as they are answered, and prints the
rate in requests a second.

A separate process, so that it doesn't measure itself, with bare sockets, so that it uses little of the machine. The
connections share the API keys.
"""

import asyncio
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop

from benchmarks.lean_http import content_length


class Connection(asyncio.Protocol):
    """One request after the other: the next is sent when the previous response is complete."""

    def __init__(self, request: bytes) -> None:
        self.answers = 0
        self.fault: str | None = None
        self._request = request
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < content_length(head):
            return
        if not head.startswith(b"HTTP/1.1 200 "):
            self.fault = self._received.decode()
            self._transport.close()
            return
        self.answers += 1
        self._received = b""
        self._transport.write(self._request)

    def stop(self) -> None:
        self._transport.abort()


async def rate(url: str, seconds: float, connections: int, keys: list[str]) -> float:
    """Responses a second. Raises `RuntimeError` with a response that is not a 200."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    loop = asyncio.get_running_loop()
    started_at: list[Connection] = []
    started = time.perf_counter()
    for number in range(connections):
        key = f"Authorization: Bearer {keys[number % len(keys)]}\r\n" if keys else ""
        request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{key}\r\n".encode()
        _, connection = await loop.create_connection(lambda: Connection(request), parts.hostname, parts.port)  # noqa: B023 - called at once
        started_at.append(connection)
    await asyncio.sleep(seconds)
    took = time.perf_counter() - started
    for connection in started_at:
        connection.stop()
        if connection.fault:
            raise RuntimeError(connection.fault)
    return sum(connection.answers for connection in started_at) / took


def main() -> None:
    url, seconds, connections, *keys = sys.argv[1:]
    print(f"{uvloop.run(rate(url, float(seconds), int(connections), keys)):.1f}")


if __name__ == "__main__":
    main()
