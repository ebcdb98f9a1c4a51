"""Closing a period beside transactions that are open at its end, and what is reported when it isn't closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.store.session import execute
from app.upkeep.reconcile.records import check_records
from app.usage import closing
from tests.support.lone_pool import LonePool
from tests.support.store import execute_at
from tests.usage.histories import KEEP, begin, moment_of, set_clock
from tests.usage.ledger_model import PERIOD
from tests.usage.test_ledger import stored_ledger

BEFORE, BORDER, AFTER = map(moment_of, ("2027-01-31T21:59:00", "2027-01-31T22:00:00", "2027-01-31T22:01:00"))


@asynccontextmanager
async def _beside(pool: LonePool) -> AsyncIterator[Any]:
    """Another process's connection, in a transaction that is committed at the end."""
    connection = await asyncpg.connect(pool.api.control_dsn)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@pytest.fixture
async def member(pool: LonePool, control_admin_dsn: str) -> UUID:
    """A database of the pool, a minute before a period ends."""
    await begin(control_admin_dsn, BEFORE)
    host = await pool.api.add_host()
    [member] = await pool.add_members(1, host)
    return member


async def test_a_period_stays_open_for_a_transaction_that_may_count_in_it(pool: LonePool, member: UUID) -> None:
    team = (await pool.api.caller()).team_id
    async with _beside(pool) as other:
        await other.execute("UPDATE databases SET team_id = $2 WHERE uuid = $1", member, team)
        await set_clock(AFTER)
        assert (await closing.close(PERIOD, KEEP, patience=0)).through is None
    assert (await closing.close(PERIOD, KEEP)).rows == 1
    [used] = (await stored_ledger()).values()
    assert used == (BORDER - BEFORE, 0, 0)


async def test_what_the_check_reports(pool: LonePool, control_admin_dsn: str, member: UUID) -> None:
    """What can't be seen in the ledger itself: that it is late, and that it was passed by."""
    team = (await pool.api.caller()).team_id
    await execute(
        "UPDATE databases SET team_id = $2, updated_at = now() - interval '1 hour' WHERE uuid = $1", member, team
    )
    assert await _reported() == []
    await execute("UPDATE usage_clock SET closed_through = now() - interval '4 hours'")
    await execute_at(
        control_admin_dsn,
        "ALTER TABLE databases DISABLE TRIGGER usage_of_database",
        "UPDATE databases SET status = 'paused', paused_reason = 'team'",
    )
    assert await _reported() == ["usage_not_closed", "usage_not_metered"]


async def _reported() -> list[str]:
    found = await check_records(timedelta(seconds=1))
    return sorted(one.rule for one in found if one.rule.startswith("usage_"))
