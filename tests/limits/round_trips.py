"""A way to PostgreSQL that counts round trips: the messages after which a client waits for the server."""

import asyncio
import contextlib
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from app.local.ports import LOOPBACK
from app.store.session import APPLICATION_NAME
from tests.support.ports import free_port

_PARSE, _BIND, _SYNC, _QUERY = b"P", b"B", b"S", b"Q"
_SSL_REQUEST = 80_877_103
_LISTENER = f"{APPLICATION_NAME} listener\0".encode()
_QUIET_SECONDS = 0.5


class Counter:
    """`count` is of all connections since the last time that it was set to 0."""

    def __init__(self) -> None:
        self.count = 0
        self._last = time.monotonic()

    def is_quiet(self) -> bool:
        """Whether whoever uses it has nothing more to say, as far as can be told."""
        return time.monotonic() - self._last > _QUIET_SECONDS

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """From client to server. Protocol documentation, section "Message Formats": what opens a connection has no
        type byte. A listening connection asks from time to time whether it still works, for no request at all. That a
        statement is prepared isn't counted either, once for each connection: which one a request gets is chance."""
        opening, listens, prepared, prepares = True, False, set[bytes](), False
        while True:
            kind = b"" if opening else await reader.readexactly(1)
            head = await reader.readexactly(4)
            body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
            if opening:
                opening = struct.unpack("!I", body[:4])[0] == _SSL_REQUEST
                listens = _LISTENER in body
            if kind == _PARSE:
                text = body.split(b"\0", 2)[1]
                prepares = text not in prepared
                prepared.add(text)
            if not listens:
                self.count += kind in (_SYNC, _QUERY) and not prepares
                self._last = time.monotonic()
            # With its first use in the same message it is a round trip like others.
            prepares = prepares and kind not in (_BIND, _SYNC, _QUERY)
            writer.write(kind + head + body)
            await writer.drain()


@asynccontextmanager
async def counting(dsn: str) -> AsyncIterator[tuple[str, Counter]]:
    """The same database by a way that counts."""
    counter, port, parts = Counter(), free_port(), urlsplit(dsn)
    ways: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, parts.port)
        both = [
            asyncio.create_task(counter.copy(reader, there_writer)),
            asyncio.create_task(_copy(there_reader, writer)),
        ]
        ways.update(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for way in both:
            way.cancel()
        for end in (writer, there_writer):
            end.transport.abort()

    server = await asyncio.start_server(accept, LOOPBACK, port)
    try:
        yield urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{port}"))), counter
    finally:
        server.close()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
