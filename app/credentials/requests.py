"""The workflow that brings a database's credentials and users to its engine, asked for in the transaction that changes
their rows."""

from app.contracts.credentials import ApplyCredentials, ApplyCredentialsInput
from app.contracts.queues import credentials_workflow_id
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_start


async def request_apply(
    record: DatabaseRecord, revision: int, *, priority: int = INTERACTIVE, relayed: bool = False
) -> PendingStart:
    """`revision` is the one that the change was counted as."""
    return await request_start(
        ApplyCredentials,
        credentials_workflow_id(record.uuid, revision),
        ApplyCredentialsInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            revision=revision,
        ),
        priority=priority,
        relayed=relayed,
    )
