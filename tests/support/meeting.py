"""Requests that meet at a locked row: none continues before all have reached it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg

from app.store.session import fetch
from tests.support.waiting import until

Answer = TypeVar("Answer")

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def meet(control_dsn: str, table: str, requests: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """Locks every row of the table, starts the requests, and releases the locks when all of them wait."""
    async with row_lock(control_dsn, table) as waiters:
        asked = [asyncio.ensure_future(request) for request in requests]
        await until(lambda: _all_waiting(waiters, len(asked)))
    return list(await asyncio.gather(*asked))


@asynccontextmanager
async def row_lock(control_dsn: str, table: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Locks every row of the table for the block. Yields what counts those who wait for a lock."""
    async with rows_held(control_dsn, table):
        yield waiters


@asynccontextmanager
async def rows_held(control_dsn: str, table: str) -> AsyncIterator[asyncpg.Connection]:
    """Locks every row of the table for the block; those of a part of it, where a WHERE follows its name. Yields the
    connection that holds them: what it changes, those find who waited. Requests that only wait for the lock may go on
    in any order."""
    holder = await asyncpg.connect(control_dsn)
    try:
        async with holder.transaction():
            await holder.execute(f"SELECT 1 FROM {table} FOR NO KEY UPDATE")
            yield holder
    finally:
        await holder.close()


async def waiters() -> int:
    """How many wait for a lock."""
    return len(await fetch(_WAITING))


async def _all_waiting(waiters: Callable[[], Awaitable[int]], count: int) -> bool:
    return await waiters() == count
