"""How each kind of operation is cancelled. The row decides; a workflow is only woken.

Each function is called with the team, the database and the operation locked, and the operation open and not past the
point of no return.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from uuid import UUID

import msgspec

from app.backups.operation import cancel_backup
from app.backups.restores import in_place
from app.blueprints.applications import queue
from app.contracts.base import PauseReason
from app.core.errors import DatabaseDestroyed, InvalidField, OperationNotCancellable
from app.credentials import shares
from app.credentials.operation import cancel_rotation
from app.databases import access
from app.databases.limits import Before, change_limits
from app.databases.pool.eviction import room_on_host
from app.databases.records import DatabaseRecord
from app.operations import ends, records
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.operations.records import OperationRecord
from app.outbox.workflow_starts import PendingStart
from app.provisioning import service
from app.provisioning.lifecycle import NO_GRACE
from app.provisioning.undeletion import undelete
from app.quotas import usage
from app.quotas.plans import Plans

Cancel = Callable[[Plans, OperationRecord, DatabaseRecord], Awaitable[PendingStart | None]]
"""Undoes what the operation has changed so far, and ends it. Returns the workflow to start after the commit, if any.
Raises `OperationNotCancellable` where that can't be done any more."""


async def _create(plans: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart | None:
    """Cancels a create by deleting the database while it is being made: nothing is left. Protection is for what holds
    data."""
    await _cancelled(operation)
    return (await service.delete_any(plans, record.uuid, NO_GRACE, even_if_protected=True)).start


async def _delete(plans: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart | None:
    """Cancels a deletion by undeleting the database."""
    try:
        await undelete(plans, record.uuid)
    except DatabaseDestroyed:
        step = next(step.name for step in KINDS[operation.type].steps if step.irrevocable)
        raise OperationNotCancellable(
            "The database's grace period is over.", status=operation.status.value, step=step
        ) from None
    return None


async def _undelete(plans: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart | None:
    """Cancels an undeletion by deleting the database, with what was left of its grace."""
    assert operation.undo is not None, "it is cancellable"
    grace = timedelta(seconds=operation.undo["grace_seconds"])
    await _cancelled(operation)
    return (await service.delete_any(plans, record.uuid, grace)).start


async def _limits(_: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart | None:
    """Brings back the limits from before. A later change builds on this one, and has to be cancelled first."""
    if await records.has_later(operation):
        raise OperationNotCancellable(
            "A later change of the limits builds on it. Cancel that one first.", status=operation.status.value
        )
    before = msgspec.convert(operation.undo, Before)
    if before.connections < record.connections:
        try:
            await shares.check_limit(record.id, before.connections)
        except InvalidField as fault:
            raise OperationNotCancellable(
                f"Users were given connections since. {fault.message}", status=operation.status.value
            ) from None
    if before.connections > record.connections:
        room = await room_on_host(record.host_id, before.connections, allocated=record.connections)
        if before.connections > room:
            raise OperationNotCancellable(
                "The connections that the database gave up are allocated to others by now.",
                status=operation.status.value,
            )
    await _cancelled(operation)
    return await change_limits(record, before.quotas, before.connections, accepted=False)


async def _pause(_: Plans, operation: OperationRecord, record: DatabaseRecord) -> None:
    assert operation.undo is not None, "it is cancellable"
    reason = record.paused_reason
    # An operator may have paused it too, since: that isn't lifted with the team's pause.
    if reason is not None and operation.undo.get("reason", reason.value) != reason.value:
        raise OperationNotCancellable("It is paused for another reason by now.", status=operation.status.value)
    await _cancelled(operation)
    await access.withdraw_pause(record)


async def _resume(_: Plans, operation: OperationRecord, record: DatabaseRecord) -> None:
    assert operation.undo is not None, "it is cancellable"
    await _cancelled(operation)
    reason = PauseReason(operation.undo["paused_reason"])
    if reason is PauseReason.RUNTIME:
        # Or the next measurement would resume it.
        await usage.withdraw_excuse(record.id)
    await access.withdraw_resumption(record, reason)


async def _apply_blueprint(_: Plans, operation: OperationRecord, __: DatabaseRecord) -> None:
    await queue.cancel(operation)


async def _rotate(_: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart:
    return await cancel_rotation(operation, record)


async def _restore(plans: Plans, operation: OperationRecord, record: DatabaseRecord) -> PendingStart | None:
    """Cancels a restore in place before anything of the data is touched: it stays as it is. Any other restore is
    cancelled like a create."""
    assert operation.undo is not None, "it is cancellable"
    if "restoration" not in operation.undo:
        return await _create(plans, operation, record)
    if not await in_place.cancel(record, UUID(operation.undo["restoration"])):
        raise OperationNotCancellable("Its data is being exchanged.", status=operation.status.value, step="exchange")
    await _cancelled(operation)
    return None


async def _backup(_: Plans, operation: OperationRecord, __: DatabaseRecord) -> None:
    await cancel_backup(operation)


async def _cancelled(operation: OperationRecord) -> None:
    await ends.end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)


CANCELLATIONS: Mapping[OperationType, Cancel] = {
    OperationType.CREATE: _create,
    OperationType.CLONE: _create,
    OperationType.RESTORE: _restore,
    OperationType.DELETE: _delete,
    OperationType.UNDELETE: _undelete,
    OperationType.LIMITS: _limits,
    OperationType.PAUSE: _pause,
    OperationType.RESUME: _resume,
    OperationType.APPLY_BLUEPRINT: _apply_blueprint,
    OperationType.ROTATE: _rotate,
    OperationType.BACKUP: _backup,
}
"""The functions for the kinds of operation that this folder and those beneath it begin."""

UNDONE_BY: Mapping[OperationType, OperationType] = {
    OperationType.CREATE: OperationType.DELETE,
    OperationType.DELETE: OperationType.UNDELETE,
    OperationType.UNDELETE: OperationType.DELETE,
}
"""The operation that undoes a cancelled one, begun in the same transaction. The other kinds have none: the engine
follows the row in the run that was under way, or in the next one."""
