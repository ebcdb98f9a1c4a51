"""The operation of a rotation: accepted with it, and ended when its new credentials are proven, or are not to be."""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.contracts.queues import credentials_workflow_id
from app.core.errors import OperationNotCancellable
from app.credentials import rotations
from app.credentials.requests import request_apply
from app.databases import credentials
from app.databases.records import DatabaseRecord
from app.operations.acceptance import accept
from app.operations.ends import end, finish
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.operations.records import OperationRecord
from app.outbox.workflow_starts import PendingStart

PROVE = "prove"
"""The one step of a rotation's operation."""

_INACCESSIBLE = {
    DatabaseStatus.DELETED: ReasonCode.DATABASE_DELETED,
    DatabaseStatus.PAUSED: ReasonCode.DATABASE_PAUSED,
}


async def accept_rotation(record: DatabaseRecord, rotation: UUID, revision: int) -> None:
    """Accepts the operation of a rotation, in the transaction that adds the rotation."""
    await accept(
        OperationType.ROTATE,
        record,
        workflow_id=credentials_workflow_id(record.uuid, revision),
        undo={"rotation": str(rotation)},
    )


async def note_proven(database_id: int) -> None:
    """Ends the operation of a rotation, in the transaction that records the proof, with the database's row locked."""
    await finish(database_id, (OperationType.ROTATE,))


async def note_cancelled(database_id: int, status: DatabaseStatus) -> None:
    """Ends the operation as cancelled, in the transaction that records that, with the database's row locked. `status`
    is the database's."""
    because = _INACCESSIBLE.get(status, ReasonCode.CANCELLED)
    await finish(database_id, (OperationType.ROTATE,), OperationStatus.CANCELLED, because=because)


async def cancel_rotation(operation: OperationRecord, record: DatabaseRecord) -> PendingStart:
    """Has the engine forget the new credentials, and ends the operation. With the database's and the operation's rows
    locked. Raises `OperationNotCancellable` once a login has proven them."""
    assert operation.undo is not None, "it is cancellable"
    rotation = await rotations.find(UUID(operation.undo["rotation"]))
    if rotation is None or not await rotations.begin_cancellation(rotation.id):
        raise OperationNotCancellable(
            "The new credentials are the database's by now.", status=operation.status.value, step=PROVE
        )
    await end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)
    return await request_apply(record, await credentials.next_revision(record.id))
