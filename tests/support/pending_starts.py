"""Pending starts of workflows for databases that don't exist, unless one is given, in a region without workers."""

from uuid import UUID, uuid4

from app.contracts.base import Engine
from app.contracts.databases import ApplyLimits, ApplyLimitsInput
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_start
from app.store.session import fetch


async def request_pending(
    *, priority: int = INTERACTIVE, workflow_id: str | None = None, database: UUID | None = None
) -> PendingStart:
    """The workflow's id ends with the database's uuid."""
    request = ApplyLimitsInput(
        database=database or uuid4(), engine=Engine.POSTGRES, region="nowhere-9", team_id=7, revision=1
    )
    return await request_start(ApplyLimits, workflow_id or f"test/{request.database}", request, priority=priority)


async def pending_ids() -> list[str]:
    """The ids of the workflows that are still to be started."""
    return [row["workflow_id"] for row in await fetch("SELECT workflow_id FROM workflow_starts ORDER BY id")]


async def make_due() -> None:
    """Makes all of them due."""
    await fetch("UPDATE workflow_starts SET next_attempt_at = now()")
