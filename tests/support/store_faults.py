"""A way to an S3 server on which a request can be refused, be left without an answer, or break off."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum

from app.local.ports import LOOPBACK
from tests.support.ports import free_port
from tests.support.proxy import both_ways


class Fault(Enum):
    """What becomes of a request."""

    ERROR = "500 Internal Server Error"
    BUSY = "503 Slow Down"
    FULL = "507 Insufficient Storage"
    FORBIDDEN = "403 Forbidden: AccessDenied"
    SKEWED = "403 Forbidden: RequestTimeTooSkewed"
    OTHER_KEY = "403 Forbidden: InvalidAccessKeyId"
    HANG = "nobody answers"
    BREAK = "the connection breaks in the middle of the request"
    LOST = "it is carried out, and the answer is lost"


Decide = Callable[[str, str], Fault | None]
"""Given the method and the path with its query."""


class StoreFaults:
    """Forwards requests, one for each connection, unless `decide` names a fault."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.seen: list[tuple[str, str]] = []
        self.decide: Decide = lambda _method, _path: None
        self.keys: set[str] | None = None
        """Only what one of these has signed is let through, if there are any."""
        self.signers: list[str] = []
        """The key of each request."""
        self._target_port = target_port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        self.seen.append((method, path))
        self.signers.append(head.partition(b" Credential=")[2].partition(b"/")[0].decode())
        known = self.keys is None or self.signers[-1] in self.keys
        fault = self.decide(method, path) if known else Fault.OTHER_KEY
        if fault in (None, Fault.LOST):
            await self._forward(head, reader, None if fault else writer)
        elif fault is Fault.HANG:
            await asyncio.Event().wait()
        elif fault is Fault.BREAK:
            await reader.read(1000)
            writer.transport.abort()
        else:
            await reader.readexactly(_body_length(head))
            writer.write(_refusal(fault))
            await writer.drain()

    async def _forward(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
        """Without `writer` the answer goes nowhere."""
        back, onward = await asyncio.open_connection(LOOPBACK, self._target_port)
        try:
            onward.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            if writer is not None:
                await both_ways((reader, onward), (back, writer))
            else:
                onward.write(await reader.readexactly(_body_length(head)))
                await back.read()
        finally:
            onward.transport.abort()


@asynccontextmanager
async def store_faults(target_port: int) -> AsyncIterator[StoreFaults]:
    """The way, open for the block."""
    way = StoreFaults(target_port)
    open_ones: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(way.accept(reader, writer))
        open_ones.add(task)
        task.add_done_callback(open_ones.discard)

    server = await asyncio.start_server(accept, LOOPBACK, way.port)
    try:
        yield way
    finally:
        server.close()
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


def _refusal(fault: Fault) -> bytes:
    status, _, code = fault.value.partition(": ")
    body = f"<Error><Code>{code}</Code></Error>" if code else ""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def _body_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return 0
