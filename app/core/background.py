"""Doing something again and again beside other work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog

log = structlog.get_logger(__name__)


@asynccontextmanager
async def repeating(
    look: Callable[[], Awaitable[Any]], seconds: float, *, failure: str, at_once: bool = False, **about: str
) -> AsyncIterator[None]:
    """Calls `look` again and again during the block, with a pause of `seconds` between two calls, and before the first
    one unless `at_once`. A call that raises is logged as `failure`, with the fields `about`, and the calls go on."""

    async def repeat() -> None:
        if not at_once:
            await asyncio.sleep(seconds)
        while True:
            try:
                await look()
            except Exception as fault:
                log.info(failure, reason=str(fault) or type(fault).__name__, **about)
            await asyncio.sleep(seconds)

    repeated = asyncio.create_task(repeat())
    try:
        yield
    finally:
        repeated.cancel()
        await asyncio.gather(repeated, return_exceptions=True)
