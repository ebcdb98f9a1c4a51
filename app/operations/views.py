"""From an operation's row to what a client sees of it."""

from app.operations.records import OperationRecord
from app.operations.schemas import OperationReference, OperationView, RequestedBy


def view(record: OperationRecord) -> OperationView:
    return OperationView(
        uuid=record.uuid,
        type=record.type,
        database_uuid=record.database,
        database_name=record.database_name,
        status=record.status,
        steps=record.steps,
        progress=record.progress,
        reason=record.reason,
        expected_seconds=record.expected_seconds,
        deadline_at=record.deadline_at,
        cancellable=record.cancellable,
        requested_by=_requested_by(record),
        request_id=record.request_id,
        workflow_id=record.workflow_id,
        created_at=record.created_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
    )


def reference(record: OperationRecord) -> OperationReference:
    return OperationReference(uuid=record.uuid, status=record.status)


def _requested_by(record: OperationRecord) -> RequestedBy | None:
    if record.user_id is None:
        return None
    return RequestedBy(user_id=record.user_id, api_key_id=record.key_id)
