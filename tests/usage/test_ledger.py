"""The ledger is what a model adds up of random histories, to the byte-second and the second."""

import random
from collections import Counter

import asyncpg
import pytest

from app.store.session import execute, fetch
from app.usage import closing
from tests.support.lone_pool import LonePool
from tests.usage.histories import KEEP, START, History, begin, set_clock
from tests.usage.ledger_model import PERIOD, Key, Sums

_SUMS = "runtime_seconds, storage_byte_seconds, backup_byte_seconds"


async def stored_ledger() -> dict[Key, Sums]:
    """As it is stored: a period of a database may have several rows."""
    rows = await fetch(f"SELECT database_uuid, starts_at, {_SUMS} FROM usage_periods")
    found: dict[Key, Counter[str]] = {}
    for row in rows:
        sums = found.setdefault((row["database_uuid"], row["starts_at"]), Counter())
        sums.update({name: int(row[name]) for name in _SUMS.split(", ")})
    return {
        key: (one["runtime_seconds"], one["storage_byte_seconds"], one["backup_byte_seconds"])
        for key, one in found.items()
    }


_DAYS = (
    f"SELECT database_uuid, starts_at, team_id, plan, region, ends_at, {_SUMS} FROM usage_days ORDER BY 1, 2, 3, 4, 5"
)
_ADDED_UP = f"""
SELECT database_uuid, date_trunc('day', starts_at, 'UTC') AS starts_at, team_id, plan, region, max(ends_at) AS ends_at,
       {", ".join(f"sum({name}) AS {name}" for name in _SUMS.split(", "))}
FROM usage_periods GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""


async def _history(pool: LonePool, owner_dsn: str, seed: int, steps: int) -> History:
    host, other = await pool.api.add_host(), await pool.api.add_host()
    await begin(owner_dsn, START)
    callers = [await pool.api.caller(tier="enterprise") for _ in range(2)]
    history = History(pool, callers, host, other, random.Random(seed))
    for _ in range(3):
        await history.create()
    for _ in range(steps):
        await history.step()
    return history


async def _close_all(history: History) -> int:
    """Everything up to the end of the period that is under way; returns that."""
    end = history.model.now - history.model.now % PERIOD + PERIOD
    await set_clock(end)
    await closing.close(PERIOD, KEEP)
    return end


@pytest.mark.parametrize("seed", range(4))
async def test_random_histories(pool: LonePool, control_admin_dsn: str, seed: int) -> None:
    history = await _history(pool, control_admin_dsn, seed, 60)
    end = await _close_all(history)
    assert await stored_ledger() == history.model.usage(end)
    assert history.rolled_back > 0
    assert await fetch("SELECT 1 FROM usage_parts") == []
    assert await fetch(_DAYS) == await fetch(_ADDED_UP)


async def test_the_service_never_changes_what_is_closed(pool: LonePool) -> None:
    for statement in ("UPDATE usage_periods SET runtime_seconds = 0", "DELETE FROM usage_periods"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await execute(statement)
