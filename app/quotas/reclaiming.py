"""Frozen databases whose deletions may have left space to give back, in turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic
from uuid import UUID

from app.contracts.quotas import FrozenDatabase
from app.store.session import execute, fetch_all

MOST_RECLAIMED = 20
"""The most databases of one region whose turn comes in one run."""
LONG_SECONDS = 30.0
_LATER = timedelta(minutes=10)

_FROZEN = """
SELECT region, uuid AS database FROM (
    SELECT d.region, d.uuid, d.id, u.reclaimed_at,
           row_number() OVER (PARTITION BY d.region ORDER BY u.reclaimed_at NULLS FIRST, d.frozen_at, d.id) AS turn
    FROM databases d JOIN database_usage u ON u.database_id = d.id
    WHERE d.status = 'active' AND d.frozen_at IS NOT NULL AND d.access_applied >= d.access_revision
      AND coalesce(u.reclaimed_at <= now(), true)
) f WHERE turn <= $1 ORDER BY region, turn
"""


async def list_frozen() -> list[FrozenDatabase]:
    """The frozen databases of each region that have waited longest for their turn."""
    return await fetch_all(FrozenDatabase, _FROZEN, MOST_RECLAIMED)


@asynccontextmanager
async def turn(database: UUID, long_seconds: float = LONG_SECONDS) -> AsyncIterator[None]:
    """Takes a database's turn, for the block. Its next turn comes after everybody else's, whatever becomes of this one;
    ten minutes later if this one takes long, or its process dies. A rebuild that takes longer than a step may would
    otherwise begin anew in each run, keep the tenant out of the table, and hold up what else waits for the database."""
    began = monotonic()
    await _next_turn(database, _LATER)
    try:
        yield
    finally:
        if monotonic() - began < long_seconds:
            await _next_turn(database, timedelta())


async def _next_turn(database: UUID, after: timedelta) -> None:
    await execute(
        "UPDATE database_usage SET reclaimed_at = now() + $2 FROM databases d WHERE d.id = database_id AND d.uuid = $1",
        database,
        after,
    )
