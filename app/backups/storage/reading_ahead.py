"""Chunks that are made while those before them are used: each side keeps a core busy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_AHEAD = 2
"""Chunks that wait: beside the one that is used and the one that is made, that is all there is in memory."""


class _Failed:
    def __init__(self, fault: BaseException) -> None:
        self.fault = fault


@asynccontextmanager
async def reading_ahead(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Yields the same chunks, read ahead. An error that they raise comes in its place, and none of them is read after
    the block."""
    waiting: asyncio.Queue[bytes | _Failed | None] = asyncio.Queue(_AHEAD)

    async def read() -> None:
        try:
            async for chunk in chunks:
                await waiting.put(chunk)
        except Exception as fault:
            await waiting.put(_Failed(fault))
        else:
            await waiting.put(None)

    async def taken() -> AsyncIterator[bytes]:
        while (one := await waiting.get()) is not None:
            if isinstance(one, _Failed):
                raise one.fault
            yield one

    reading = asyncio.create_task(read())
    try:
        yield taken()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
