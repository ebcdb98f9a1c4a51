"""The operation of a backup: how it goes on, how it ends, and how it is cancelled."""

from uuid import UUID

from app.backups.records import BackupRecord
from app.contracts.queues import backup_workflow_id
from app.contracts.retries import CANCEL
from app.core.errors import OperationNotCancellable
from app.operations import ends, progress
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.operations.records import OperationProgress, OperationRecord, open_on
from app.outbox.workflow_starts import request_signal
from app.store.notify import announce
from app.store.session import execute

DUMP = "dump"
_UNIT = "bytes"


async def find_operation(record: BackupRecord) -> OperationRecord | None:
    """The open operation of the backup, with its row locked, or None. Where all are locked, the database's row comes
    before it, and the backup's after it."""
    if record.database_id is None:
        return None
    name = backup_workflow_id(record.uuid)
    found = await open_on(record.database_id, (OperationType.BACKUP,))
    return next((one for one in found if (one.workflow_id or "").startswith(name)), None)


async def note_bytes(operation: OperationRecord, done: int, expected: int) -> None:
    """Reports that so many of the dump's bytes were read, of as many as are expected."""
    if operation.cancel_requested_at is None:
        so_far = OperationProgress(done=done, total=max(done, expected), unit=_UNIT)
        await progress.begin(operation, DUMP, so_far)


async def cancel_backup(operation: OperationRecord) -> None:
    """Ends the backup before it is whole, with the database's and the operation's rows locked. Raises
    `OperationNotCancellable` when the backup is over by now."""
    assert operation.undo is not None, "it is cancellable"
    backup = UUID(operation.undo["backup"])
    if not await mark_cancelled(backup):
        raise OperationNotCancellable("The backup is over by now.", status=operation.status.value, step=DUMP)
    await ends.end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)
    await announce(operation.database)
    assert operation.workflow_id is not None, "it has a workflow, or will have"
    await request_signal(KINDS[operation.type].workflow, operation.workflow_id, CANCEL)


async def mark_cancelled(backup: UUID) -> bool:
    """Marks a backup under way as cancelled, and returns whether it was under way. What the store has of it is removed
    later."""
    return bool(
        await execute(
            "UPDATE backups SET status = 'cancelled', changed_at = now()"
            " WHERE uuid = $1 AND status IN ('pending', 'running')",
            backup,
        )
    )
