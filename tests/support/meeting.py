"""Requests that meet at a locked row: none continues before all have reached it."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

import asyncpg

from app.store.session import fetch
from tests.support.waiting import until

Answer = TypeVar("Answer")

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def meet(control_dsn: str, table: str, requests: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """Locks every row of the table, starts the requests, and releases the locks when all of them wait."""
    holder = await asyncpg.connect(control_dsn)
    try:
        async with holder.transaction():
            await holder.execute(f"SELECT 1 FROM {table} FOR NO KEY UPDATE")
            asked = [asyncio.ensure_future(request) for request in requests]
            await until(lambda: _all_waiting(len(asked)))
    finally:
        await holder.close()
    return list(await asyncio.gather(*asked))


async def _all_waiting(count: int) -> bool:
    return len(await fetch(_WAITING)) == count
