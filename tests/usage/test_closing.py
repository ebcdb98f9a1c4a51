"""Closing a period beside transactions that are open at its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.usage import closing
from tests.support.lone_pool import LonePool
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
