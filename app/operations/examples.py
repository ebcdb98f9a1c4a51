"""Examples of operations for the API's description."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from app.operations.kinds import OperationStatus, OperationType, StepStatus
from app.operations.reasons import ReasonCode, reason
from app.operations.records import Step
from app.operations.schemas import OperationReference, OperationView, RequestedBy

EXAMPLE_OPERATION_UUID = "0b9f6a1c-52f5-4c8e-8a3d-6f0d1c2b7e44"
_DATABASE_UUID = "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"
_ASKED_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_TRIED_AT = _ASKED_AT + timedelta(seconds=1)

EXAMPLE_OPERATION = OperationView(
    uuid=UUID(EXAMPLE_OPERATION_UUID),
    type=OperationType.CREATE,
    database_uuid=UUID(_DATABASE_UUID),
    database_name="orders",
    status=OperationStatus.WAITING,
    steps=[
        Step(name="place", status=StepStatus.SUCCEEDED, started_at=_ASKED_AT, finished_at=_ASKED_AT, attempts=1),
        Step(name="make", status=StepStatus.RUNNING, started_at=_TRIED_AT, attempts=2),
    ],
    progress=None,
    reason=reason(ReasonCode.HOST_UNAVAILABLE, retryable=True, next_attempt_at=_TRIED_AT + timedelta(seconds=4)),
    expected_seconds=0.4,
    deadline_at=_ASKED_AT + timedelta(minutes=5),
    cancellable=True,
    requested_by=RequestedBy(user_id=1, api_key_id=1),
    request_id="req_3f1c0d9be2a4475d8c6b7a10",
    workflow_id=f"provision-{_DATABASE_UUID}",
    created_at=_ASKED_AT,
    started_at=_TRIED_AT,
    finished_at=None,
)
EXAMPLE_CANCELLED = msgspec.structs.replace(
    EXAMPLE_OPERATION,
    status=OperationStatus.CANCELLED,
    steps=[
        EXAMPLE_OPERATION.steps[0],
        msgspec.structs.replace(
            EXAMPLE_OPERATION.steps[1], status=StepStatus.SKIPPED, finished_at=_TRIED_AT + timedelta(seconds=2)
        ),
    ],
    reason=reason(ReasonCode.CANCELLED),
    cancellable=False,
    finished_at=_TRIED_AT + timedelta(seconds=2),
)
EXAMPLE_CANCELLING = msgspec.structs.replace(EXAMPLE_OPERATION, reason=reason(ReasonCode.CANCELLING))
EXAMPLE_PENDING_REFERENCE = OperationReference(uuid=UUID(EXAMPLE_OPERATION_UUID), status=OperationStatus.PENDING)
EXAMPLE_DONE_REFERENCE = OperationReference(uuid=UUID(EXAMPLE_OPERATION_UUID), status=OperationStatus.SUCCEEDED)
EXAMPLE_WAITING_REFERENCE = OperationReference(uuid=UUID(EXAMPLE_OPERATION_UUID), status=OperationStatus.WAITING)
