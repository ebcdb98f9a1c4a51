"""Who may do what in a database: its pauses and freezes, as its row has them, with the workflow that brings them to the
engine.

Each change belongs in a transaction that holds the row locked; it counts `access_revision` up, and whoever waits for it
watches `access_applied`.
"""

from typing import Any
from uuid import UUID

from app.contracts.base import DatabaseStatus, PauseReason
from app.contracts.databases import ApplyAccess, ApplyAccessInput
from app.contracts.queues import access_workflow_id
from app.core.clock import utc_now
from app.core.errors import DatabaseNotActive
from app.databases import records
from app.databases.limits import change_limits
from app.databases.records import DatabaseRecord, expect
from app.databases.views import append_event
from app.operations.acceptance import accept
from app.operations.ends import finish
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import ReasonCode, reason
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_start
from app.quotas.plans import Plans
from app.store.notify import announce
from app.store.session import execute, fetch_value, transaction

_OPPOSITES = (OperationType.PAUSE, OperationType.RESUME)
_ACCESS = (*_OPPOSITES, OperationType.UNDELETE)
"""The types of operation that end when the engine has the access of their revision."""


async def pause(plans: Plans, record: DatabaseRecord, reason: PauseReason) -> PendingStart | None:
    """Changes `active` to `paused`: from now on the database counts as closed, and it is closed when the workflow has
    ended. A paused database stays so; an operator's reason takes the place of the others. Raises `DatabaseNotActive`
    for any other status."""
    if record.status is DatabaseStatus.PAUSED and record.paused_reason is not None:
        if reason is PauseReason.OPERATOR:
            await execute("UPDATE databases SET paused_reason = $2 WHERE id = $1", record.id, reason.value)
        return None
    if record.status not in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED):
        raise DatabaseNotActive(record.status.value)
    assignments = "status = 'paused', paused_reason = $2, updated_at = now()"
    start = await _change(record, assignments, reason.value, type=OperationType.PAUSE, undo={"reason": reason.value})
    if record.status is DatabaseStatus.ACTIVE:
        await append_event(plans, EventType.DATABASE_PAUSED, record.uuid)
    return start


async def resume(record: DatabaseRecord) -> PendingStart | None:
    """Removes the reason of a pause. The database is `active` again, with `database.resumed`, when the engine lets its
    tenant in. Nothing happens to a database that is active, or on its way back. Raises `DatabaseNotActive` for any
    other status."""
    if record.status is DatabaseStatus.ACTIVE:
        return None
    if record.status is not DatabaseStatus.PAUSED:
        raise DatabaseNotActive(record.status.value)
    if record.paused_reason is None:
        return None
    undo = {"paused_reason": record.paused_reason.value}
    return await _change(record, "paused_reason = NULL", type=OperationType.RESUME, undo=undo)


async def withdraw_pause(record: DatabaseRecord) -> None:
    """Withdraws a pause that is not in force yet. The database is on its way back to `active`, and is that, with
    `database.resumed`, when the engine is known to let its tenant in."""
    await _change(record, "paused_reason = NULL")


async def withdraw_resumption(record: DatabaseRecord, reason: PauseReason) -> None:
    """Withdraws a resumption that is not in force yet: the database stays paused for this reason."""
    await _change(record, "paused_reason = $2", reason.value)


async def freeze(record: DatabaseRecord) -> PendingStart | None:
    """Stops writes to the database, whether it is paused meanwhile or not. Nothing happens to a database that is
    frozen."""
    if record.frozen_at is not None:
        return None
    return await _change(record, "frozen_at = now()")


async def thaw(record: DatabaseRecord) -> PendingStart | None:
    """Undoes `freeze`."""
    if record.frozen_at is None:
        return None
    return await _change(record, "frozen_at = NULL")


async def close(plans: Plans, record: DatabaseRecord) -> None:
    """Lets nobody in until `reopen`, whatever else changes. An active database is paused meanwhile, and on its way
    back. May be repeated. The caller ends the access on the engine."""
    if record.restoring_at is not None:
        return
    await execute(
        """
        UPDATE databases SET restoring_at = now(), status = 'paused', access_revision = access_revision + 1,
               access_changed_at = now(), updated_at = now()
        WHERE id = $1
        """,
        record.id,
    )
    if record.status is DatabaseStatus.ACTIVE:
        await append_event(plans, EventType.DATABASE_PAUSED, record.uuid)
    await announce(record.uuid)


async def reopen(record: DatabaseRecord) -> None:
    """Undoes `close`: requests the workflow that lets in whom the row lets in. Nothing happens to a database that is
    not closed."""
    if record.restoring_at is not None:
        await _change(record, "restoring_at = NULL")


async def forget_closing(record: DatabaseRecord) -> None:
    """Removes the effect of `close` from the row of a deleted database: whoever undeletes it lets its tenant in."""
    await execute("UPDATE databases SET restoring_at = NULL WHERE id = $1", record.id)


async def note_reopened(plans: Plans, record: DatabaseRecord, revision: int) -> None:
    """The same as `reopen`, where the engine is already as the row was at this revision. Changes since then are brought
    to it."""
    await execute("UPDATE databases SET restoring_at = NULL, updated_at = now() WHERE id = $1", record.id)
    await record_applied(plans, record.uuid, revision)
    if record.access_revision > revision:
        await _change(record, "updated_at = now()")


async def bring_back(record: DatabaseRecord, *, relayed: bool) -> PendingStart | None:
    """Changes `deleted` to `paused`, on its way to what the database was: to `active`, with `database.resumed`, unless
    it was paused when it was deleted. A moment at which it is to delete itself stays if it lies ahead. Returns None and
    changes nothing when its grace period is over: the destruction may be under way."""
    assert record.destroy_at is not None, "a deletion says when"
    start = await _change(
        record,
        "status = 'paused', revoked_at = NULL, destroy_at = NULL, updated_at = now(),"
        " expires_at = CASE WHEN expires_at > statement_timestamp() THEN expires_at END,"
        " expiry_announced_at = CASE WHEN expires_at > statement_timestamp() THEN expiry_announced_at END",
        # Later than the moment at which a transaction began that then waited for the lock.
        where="status = 'deleted' AND destroyed_at IS NULL AND destroy_at > clock_timestamp()",
        type=OperationType.UNDELETE,
        undo={"grace_seconds": max(0.0, (record.destroy_at - utc_now()).total_seconds())},
        relayed=relayed,
    )
    if start is None:
        return None
    await finish(record.id, (OperationType.DELETE,), OperationStatus.CANCELLED, because=ReasonCode.UNDELETED)
    if record.limits_applied < record.limits_revision:
        # Their workflow ended when it found the database deleted.
        await change_limits(record, record.quotas, record.connections)
    return start


async def record_applied(plans: Plans, database: UUID, revision: int) -> None:
    """Records that the engine is as the row was at this revision. Raises `NotWanted` for a database that is deleted."""
    async with transaction():
        record = expect(await records.find_for_update(database), DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
        await execute(
            "UPDATE databases SET access_applied = greatest(access_applied, $2) WHERE id = $1", record.id, revision
        )
        await finish(record.id, _ACCESS, revision=revision)
        resuming = record.status is DatabaseStatus.PAUSED and record.paused_reason is None
        # Paused anew meanwhile, it has a later revision, which closes it again.
        if resuming and record.access_revision == revision:
            await execute("UPDATE databases SET status = 'active', updated_at = now() WHERE id = $1", record.id)
            await append_event(plans, EventType.DATABASE_RESUMED, database)
        await announce(database)


async def _change(
    record: DatabaseRecord,
    assignments: str,
    *values: str | None,
    where: str = "true",
    type: OperationType | None = None,
    undo: dict[str, Any] | None = None,
    relayed: bool = True,
) -> PendingStart | None:
    """Changes the row and requests the workflow. Returns None where the row does not meet `where`. `type` is that of
    the operation, if the change is one; `relayed` says that nobody but the relay starts the workflow."""
    revision = await fetch_value(
        int,
        f"UPDATE databases SET {assignments}, access_revision = access_revision + 1, "  # noqa: S608  ours
        f"access_changed_at = now() WHERE id = $1 AND {where} RETURNING access_revision",
        record.id,
        *values,
    )
    if revision is None:
        return None
    workflow_id = access_workflow_id(record.uuid, revision)
    if type is not None:
        # A pause that is to be resumed before it was in force never comes into force, nor the other way round.
        await finish(record.id, _OPPOSITES, OperationStatus.CANCELLED, because=ReasonCode.SUPERSEDED)
        # While the database is closed, its workflow finds nothing to do: the change counts from the reopening on.
        queued = None if record.restoring_at is None else reason(ReasonCode.QUEUED)
        await accept(type, record, workflow_id=workflow_id, revision=revision, undo=undo, reason=queued)
    await announce(record.uuid)
    return await request_start(
        ApplyAccess,
        workflow_id,
        ApplyAccessInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            revision=revision,
        ),
        priority=INTERACTIVE,
        relayed=relayed,
    )
