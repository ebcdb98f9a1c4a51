"""A connection to a server that can be cut, which makes the server unreachable."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from app.local.ports import LOOPBACK, free_port


class Proxy:
    """Forwards its own port to another; `cut` breaks all connections and refuses new ones."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._forwarding: set[asyncio.Task[None]] = set()

    def dsn(self, dsn: str) -> str:
        """The DSN of the same database through the proxy."""
        parts = urlsplit(dsn)
        return urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{self.port}")))

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.break_connections()

    async def break_connections(self) -> None:
        for task in list(self._forwarding):
            task.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._target_port)
            try:
                await both_ways((reader, there_writer), (there_reader, writer))
            finally:
                there_writer.transport.abort()
        writer.transport.abort()


@asynccontextmanager
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    """A way to the server of that DSN, open for the block."""
    port = urlsplit(dsn).port
    assert port is not None
    way = Proxy(port)
    await way.restore()
    try:
        yield way
    finally:
        await way.cut()


async def both_ways(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Until either side ends."""
    copying = [asyncio.create_task(copy(*way)) for way in ways]
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
