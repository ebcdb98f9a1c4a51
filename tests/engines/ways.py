"""A way to an engine's server that ends at a chosen moment: what a process that dies there leaves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from app.engines.base import EngineAdapter
from app.local.ports import LOOPBACK
from tests.engines.harness import EngineHost
from tests.support.proxy import copy


class Way:
    """To the server, for one process. It counts what the client sends, and lets nothing through after `last`."""

    def __init__(self, server_port: int, last: int | None) -> None:
        self.port = 0
        self.sent = 0
        self.last_sent = asyncio.Event()
        self._server_port = server_port
        self._last = last
        self._ends: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._server_port)
        self._ends += (writer, there_writer)
        directions = [
            asyncio.create_task(self._ask(reader, there_writer)),
            asyncio.create_task(copy(there_reader, writer)),
        ]
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        for end in (writer, there_writer):
            end.transport.abort()

    def break_off(self) -> None:
        """What the kernel does for a process that is gone; the connections' own ends may wait for each other."""
        for end in self._ends:
            end.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.last_sent.is_set():
                continue
            writer.write(data)
            await writer.drain()
            self.sent += 1
            if self.sent == self._last:
                self.last_sent.set()


@asynccontextmanager
async def way_to(host: EngineHost, *, last: int | None = None) -> AsyncIterator[Way]:
    way = Way(host.administrator.port, last)
    server = await asyncio.start_server(way.accept, LOOPBACK, 0)
    way.port = server.sockets[0].getsockname()[1]
    try:
        yield way
    finally:
        server.close()


async def cut_off(host: EngineHost, last: int, call: Callable[[EngineAdapter], Awaitable[None]]) -> bool:
    """Makes the call with an adapter of its own that can send no more than so many messages, logging in included.
    Returns whether it was cut off."""
    async with way_to(host, last=last) as way:
        adapter = type(host.adapter)(msgspec.structs.replace(host.administrator, port=way.port))
        calling = asyncio.ensure_future(call(adapter))
        ended = asyncio.create_task(way.last_sent.wait())
        await asyncio.wait({calling, ended}, return_when=asyncio.FIRST_COMPLETED)
        whole = calling.done()
        for one in (calling, ended):
            one.cancel()
        way.break_off()
        await asyncio.gather(calling, ended, return_exceptions=True)
        await adapter.close()
    if whole:
        await calling
    return not whole
