"""The operation of an application: accepted, begun, and ended with it."""

from app.blueprints.applications.records import ApplicationRecord
from app.contracts.applications import ApplicationStatus
from app.contracts.queues import apply_workflow_id
from app.contracts.retries import RETRY_NOW
from app.operations import ends, progress
from app.operations.acceptance import Subject, accept
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.reasons import ReasonCode, reason
from app.operations.records import OperationProgress, OperationRecord, open_on
from app.outbox.workflow_starts import request_signal

_UNIT = "statements"


async def accept_application(database: Subject, application: int, *, dry_run: bool) -> None:
    """Accepts an application's operation, in the transaction that adds it to the queue."""
    await accept(
        OperationType.APPLY_BLUEPRINT,
        database,
        workflow_id=apply_workflow_id(application, dry_run=dry_run),
        undo={"application": application},
        reason=reason(ReasonCode.QUEUED),
    )


async def note_turn(database_id: int, application: int) -> None:
    """Notes that the application's turn has come."""
    record = await _find(database_id, application)
    if record is not None:
        await progress.end_step(record, "queue")


async def note_begun(record: ApplicationRecord, statements: int) -> None:
    """Notes that the application's statements are about to run."""
    operation = await _find(record.database_id, record.id)
    if operation is not None:
        await progress.begin(operation, "apply", OperationProgress(done=0, total=statements, unit=_UNIT))


async def note_done(record: ApplicationRecord, statements: int) -> None:
    """Notes how many of the application's statements have run."""
    operation = await _find(record.database_id, record.id)
    if operation is not None and operation.progress is not None:
        done = OperationProgress(done=statements, total=operation.progress.total, unit=_UNIT)
        await progress.advance(operation, done)


async def note_end(record: ApplicationRecord, status: ApplicationStatus) -> None:
    """Ends the operation of an application that has ended with this status."""
    operation = await _find(record.database_id, record.id)
    if operation is None:
        return
    if status in (ApplicationStatus.COMPLETED, ApplicationStatus.ROLLED_BACK):
        await ends.end(operation, OperationStatus.SUCCEEDED)
    elif operation.cancel_requested_at is not None:
        await ends.end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)
    else:
        await ends.end(operation, OperationStatus.FAILED, because=ReasonCode.APPLICATION_FAILED)


async def note_lost(record: ApplicationRecord) -> None:
    """Ends the operation of an application that ended with its database's host, and wakes its workflow, which may be
    waiting for that host to answer."""
    operation = await _find(record.database_id, record.id)
    if operation is None:
        return
    await ends.end(operation, OperationStatus.FAILED, because=ReasonCode.HOST_LOST)
    if operation.workflow_id is not None:
        await request_signal(KINDS[operation.type].workflow, operation.workflow_id, RETRY_NOW)


async def is_cancelled(record: ApplicationRecord) -> bool:
    """Whether somebody wants the application to stop, and its operation has not ended yet."""
    operation = await _find(record.database_id, record.id)
    return operation is not None and operation.cancel_requested_at is not None


async def note_cancelled(database_id: int, applications: list[int], because: ReasonCode) -> None:
    """Ends the operations of applications that ended before they had begun."""
    for operation in await open_on(database_id, (OperationType.APPLY_BLUEPRINT,)):
        if (operation.undo or {}).get("application") in applications:
            await ends.end(operation, OperationStatus.CANCELLED, because=because)


async def _find(database_id: int, application: int) -> OperationRecord | None:
    """The application's operation, locked; None when it has ended. Where the database's row is locked too, it is locked
    before."""
    found = await open_on(database_id, (OperationType.APPLY_BLUEPRINT,))
    return next((one for one in found if (one.undo or {}).get("application") == application), None)
