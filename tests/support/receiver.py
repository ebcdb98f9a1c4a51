"""A webhook receiver: a real HTTPS server that records requests, and whose behaviour depends on the path."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import h11
import trustme

from app.local.ports import LOOPBACK

Reply = Callable[["Received", asyncio.StreamWriter], Awaitable[bytes | None]]
"""Returns the complete response, or None to close the connection."""


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    at: float
    """The time by `time.time()`."""


def answer(status: int, *, body: bytes = b"", **headers: str) -> Reply:
    """Names of headers have `_` for `-`."""
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Test\r\nContent-Length: {len(body)}\r\n{named}\r\n".encode()

    async def reply(_: Received, __: asyncio.StreamWriter) -> bytes:
        return head + body

    return reply


async def hang(_: Received, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


def held(reply: Reply, let_go: asyncio.Event) -> Reply:
    """The answer once it is let go: a receiver that hangs for as long as a test wants."""

    async def wait(received: Received, writer: asyncio.StreamWriter) -> bytes | None:
        await let_go.wait()
        return await reply(received, writer)

    return wait


async def reset(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@dataclass
class Receiver:
    """`replies` maps a path to its behaviour; other paths answer 200."""

    port: int
    ca_file: Path
    connections: int = 0
    received: list[Received] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)

    def url(self, path: str = "/", host: str = LOOPBACK) -> str:
        return f"https://{host}:{self.port}{path}"

    def of(self, path: str) -> list[Received]:
        return [one for one in self.received if one.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = h11.Connection(h11.SERVER)
        try:
            while await self._serve_once(connection, reader, writer):
                connection = h11.Connection(h11.SERVER)
        except (OSError, h11.RemoteProtocolError):
            pass  # a sender that was killed, or one that closes
        finally:
            writer.transport.abort()

    async def _serve_once(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                chunk = await reader.read(65_536)
                if not chunk:
                    return False
                connection.receive_data(chunk)
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
        assert request is not None
        headers = {bytes(name).decode(): bytes(value).decode() for name, value in request.headers}
        one = Received(bytes(request.target).decode(), headers, body, time.time())
        self.received.append(one)
        reply = await self.replies.get(one.path, answer(200, body=b"thanks"))(one, writer)
        if reply is None:
            return False
        writer.write(reply)
        await writer.drain()
        return True


@asynccontextmanager
async def receiver(folder: Path, *names: str, address: str = LOOPBACK) -> AsyncIterator[Receiver]:
    """On a free port of that address, with a certificate for it and for `names`."""
    authority = trustme.CA()
    ca_file = folder / "receivers-ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(address, "localhost", *names).configure_cert(context)
    made = Receiver(0, ca_file)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await made.serve(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, address, 0, ssl=context, backlog=1024)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
