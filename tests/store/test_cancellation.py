"""Cancelling work on our own database, at whatever moment, loses no connection of the pool."""

import asyncio
import contextlib
import random

from app.store.engine import DB
from app.store.session import connected, fetch, transaction
from tests.support.waiting import LIMIT_SECONDS

_CONNECTIONS = 3
_ROUNDS = 300


async def test_cancelled_transactions_give_their_connections_back(migrated_dsn: str) -> None:
    chance = random.Random(1)
    outer = DB.config, DB.pool
    DB.pool = None
    try:
        async with connected(migrated_dsn, max_size=_CONNECTIONS):
            for _ in range(_ROUNDS):
                await _cancelled_after(chance.uniform(0, 0.003))
            async with asyncio.timeout(LIMIT_SECONDS), asyncio.TaskGroup() as together:
                for _ in range(_CONNECTIONS):
                    together.create_task(_work())
            rows = await fetch(
                "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
                " AND datname = current_database()"
            )
            assert rows[0]["count"] == 0
    finally:
        DB.config, DB.pool = outer


async def _cancelled_after(seconds: float) -> None:
    task = asyncio.create_task(_work())
    await asyncio.sleep(seconds)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _work() -> None:
    async with transaction():
        await fetch("SELECT 1")
