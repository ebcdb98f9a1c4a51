"""Bringing databases that are there already to plans that are otherwise since."""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.databases import records
from app.databases.limits import request_limits
from app.quotas.plans import PLANS, limits_in_force
from app.store.session import fetch, transaction

_MOST = 200
"""In one run; the next one has the others."""
_BEHIND = """
SELECT d.uuid FROM databases d JOIN unnest($1::text[], $2::integer[]) AS p (plan, connections) ON p.plan = d.plan
WHERE d.status IN ('active', 'paused') AND d.connection_hard_limit IS NULL AND d.connections <> p.connections
ORDER BY d.id LIMIT $3
"""


async def follow_plans() -> int:
    """Asks for the connection limits of databases whose plan allows another number by now, and that have no limit of
    their own; returns how many there were. Storage and hours are looked up whenever they are measured."""
    plans = {name: plan.limits.connection_hard_limit for name, plan in PLANS.items()}
    behind = await fetch(_BEHIND, list(plans), list(plans.values()), _MOST)
    for row in behind:
        await _follow(row["uuid"])
    return len(behind)


async def _follow(database: UUID) -> None:
    async with transaction():
        record = await records.find_for_update(database)
        if record is None or record.status not in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED):
            return
        connections = limits_in_force(record.plan, record.quotas).connection_hard_limit
        if connections == record.connections:
            return
        rows = await fetch(
            "UPDATE databases SET connections = $2, limits_revision = limits_revision + 1, updated_at = now()"
            " WHERE id = $1 RETURNING limits_revision",
            record.id,
            connections,
        )
        await request_limits(record, rows[0]["limits_revision"])
