"""Bringing a database's limits to its engine."""

from app.contracts.databases import ApplyLimits, ApplyLimitsInput
from app.contracts.queues import limits_workflow_id
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_start


async def request_limits(record: DatabaseRecord, revision: int) -> PendingStart:
    """In the transaction that changed them, and raised `limits_revision` to this."""
    return await request_start(
        ApplyLimits,
        limits_workflow_id(record.uuid, revision),
        ApplyLimitsInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            revision=revision,
        ),
        priority=INTERACTIVE,
    )
