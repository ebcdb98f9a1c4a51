"""Deleting a database, and what its row says of when its data goes.

`destroy_at` decides. Until it has passed, a change of the row may move it either way, or bring the database back; the
workflow is only woken. Once it has passed, by our own database's clock, nothing changes it any more: the destruction
may be under way. Both sides read it under a lock on the row, so one of them comes first.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus
from app.contracts.control import GracePeriod
from app.contracts.databases import ROW_CHANGED, DeleteDatabase, DeleteDatabaseInput
from app.contracts.queues import delete_workflow_id
from app.contracts.retries import RETRY_NOW
from app.databases import records
from app.databases.records import DatabaseRecord, NotWanted, expect
from app.operations import records as operations
from app.operations.acceptance import accept
from app.operations.kinds import OperationType
from app.operations.progress import begin_step, wait_out
from app.operations.reasons import ReasonCode
from app.outbox.workflow_starts import INTERACTIVE, NORMAL, PendingStart, request_start
from app.store.session import execute, fetch_exists, fetch_one, fetch_scalar, transaction

_LONGEST_SECONDS = 31_536_000.0
"""What a timer is set to at most; the row is looked at again then."""


async def request_deletion(
    record: DatabaseRecord,
    *,
    destroy_at: datetime,
    cancel_provisioning: bool = False,
    priority: int = INTERACTIVE,
    relayed: bool = False,
) -> PendingStart:
    """Asks for the workflow of a deleted database under an id that none had before, in the transaction that changed or
    locked the row. Accepts its operation; where a deletion is begun anew, its earlier operation goes on."""
    revision = await fetch_scalar(
        int,
        "UPDATE databases SET deletion_revision = deletion_revision + 1 WHERE id = $1 RETURNING deletion_revision",
        record.id,
    )
    workflow_id = delete_workflow_id(record.uuid, revision)
    if not await operations.move(record.id, (OperationType.DELETE,), workflow_id):
        # One that never became active is destroyed at once: there is nothing to go back to.
        undo: dict[str, Any] | None = None if cancel_provisioning else {}
        await accept(
            OperationType.DELETE, record, workflow_id=workflow_id, revision=revision, undo=undo, not_before=destroy_at
        )
    return await request_start(
        DeleteDatabase,
        workflow_id,
        _input(record, destroy_at, cancel_provisioning=cancel_provisioning),
        priority=priority,
        relayed=relayed,
    )


async def wake_deletion(record: DatabaseRecord) -> None:
    """Has the workflow of the deletion look at the row again, in the transaction that changed it. `record` is the row
    before the change, deleted. A workflow that could not end the access yet looks at the row in its next attempt."""
    assert record.destroy_at is not None, "a deletion says when"
    if record.revoked_at is not None:
        await wait_out(record.id, OperationType.DELETE, "keep_data", ReasonCode.GRACE_PERIOD, until=record.destroy_at)
    await request_start(
        DeleteDatabase,
        delete_workflow_id(record.uuid, record.deletion_revision),
        _input(record, record.destroy_at, cancel_provisioning=False),
        priority=NORMAL,
        relayed=True,
        signal=RETRY_NOW if record.remote_since is not None and record.revoked_at is None else ROW_CHANGED,
    )


class _Left(msgspec.Struct, frozen=True):
    """What is left of a grace period."""

    destroy_at: datetime
    seconds: float


async def get_grace_period(database: UUID) -> GracePeriod:
    """Raises `NotWanted` for a database that is not deleted any more."""
    left = await fetch_one(
        _Left,
        """
        SELECT destroy_at, extract(epoch FROM destroy_at - clock_timestamp())::float8 AS seconds FROM databases
        WHERE uuid = $1 AND status = 'deleted'
        """,
        database,
    )
    if left is None:
        raise NotWanted("the database is not deleted")
    remaining = min(max(left.seconds, 0.0), _LONGEST_SECONDS)
    return GracePeriod(ends_at=left.destroy_at, remaining_seconds=remaining)


async def begin_destruction(database: UUID) -> DatabaseRecord:
    """Begins the destruction of a deleted database whose grace is over, and returns its row: from now on nothing brings
    it back. Raises `NotWanted` for any other database."""
    async with transaction():
        record = expect(await records.find_for_update(database), DatabaseStatus.DELETED)
        if not await is_due(record):
            raise NotWanted("the database's grace period is not over")
        await execute(
            "UPDATE databases SET destruction_began_at = coalesce(destruction_began_at, now()) WHERE id = $1", record.id
        )
        await begin_step(record.id, OperationType.DELETE, "destroy")
        return record


async def is_due(record: DatabaseRecord) -> bool:
    """Whether the grace of a deleted database is over. Its row must be locked."""
    return await fetch_exists("SELECT 1 FROM databases WHERE id = $1 AND destroy_at <= clock_timestamp()", record.id)


def _input(record: DatabaseRecord, destroy_at: datetime, *, cancel_provisioning: bool) -> DeleteDatabaseInput:
    return DeleteDatabaseInput(
        database=record.uuid,
        engine=record.engine,
        region=record.region,
        team_id=record.team_id,
        destroy_at=destroy_at,
        cancel_provisioning=cancel_provisioning,
    )
