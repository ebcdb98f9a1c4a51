"""Frozen databases whose deletions may have left space to give back, in turn."""

from uuid import UUID

from app.contracts.quotas import FrozenDatabase
from app.store.session import execute, fetch_all

MOST_RECLAIMED = 20
"""In one region, in one run."""

_FROZEN = """
SELECT region, uuid AS database FROM (
    SELECT d.region, d.uuid, d.id, u.reclaimed_at,
           row_number() OVER (PARTITION BY d.region ORDER BY u.reclaimed_at NULLS FIRST, d.frozen_at, d.id) AS turn
    FROM databases d JOIN database_usage u ON u.database_id = d.id
    WHERE d.status = 'active' AND d.frozen_at IS NOT NULL AND d.access_applied >= d.access_revision
) f WHERE turn <= $1 ORDER BY region, turn
"""


async def list_frozen() -> list[FrozenDatabase]:
    """Those of each region that have waited longest for their turn."""
    return await fetch_all(FrozenDatabase, _FROZEN, MOST_RECLAIMED)


async def take_turn(database: UUID) -> None:
    """Its next turn comes after everybody else's, whatever becomes of this one."""
    await execute(
        "UPDATE database_usage SET reclaimed_at = now() FROM databases d WHERE d.id = database_id AND d.uuid = $1",
        database,
    )
