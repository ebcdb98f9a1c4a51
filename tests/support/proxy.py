"""A connection to a server that can be cut, which makes the server unreachable."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

from app.local.ports import LOOPBACK
from tests.support.ports import free_port


class Proxy:
    """Forwards its own port to another; `cut` breaks all connections and refuses new ones; `swallow` leaves the open
    ones open and forwards nothing on them any more."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._forwarding: set[asyncio.Task[None]] = set()
        self._swallowing: set[asyncio.Task[None]] = set()

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

    def swallow(self) -> None:
        self._swallowing |= self._forwarding

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._target_port)
            try:
                ways = (reader, there_writer), (there_reader, writer)
                await both_ways(*ways, swallows=lambda: task in self._swallowing)
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


def _never() -> bool:
    return False


async def both_ways(
    *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter], swallows: Callable[[], bool] = _never
) -> None:
    """Until either side ends. What comes while `swallows` is true goes nowhere."""
    copying = [asyncio.create_task(copy(*way, swallows)) for way in ways]
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


async def copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, swallows: Callable[[], bool] = _never
) -> None:
    while data := await reader.read(65_536):
        if not swallows():
            writer.write(data)
            await writer.drain()
