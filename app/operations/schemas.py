"""The shape of operations on the wire."""

from typing import Literal
from uuid import UUID

from msgspec import Struct

from app.core.clock import Moment
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import Reason
from app.operations.records import OperationProgress, Step


class RequestedBy(Struct, kw_only=True):
    """The client whose request began the operation. Its key may be revoked by now."""

    user_id: int
    api_key_id: int | None
    """Null for a person who was signed in to the console."""


class OperationView(Struct, kw_only=True):
    """A change of a database that takes time, from the request to its end."""

    object: Literal["operation"] = "operation"
    uuid: UUID
    type: OperationType
    database_uuid: UUID
    database_name: str
    status: OperationStatus
    steps: list[Step]
    progress: OperationProgress | None
    reason: Reason | None
    """Why it waits, or why it ended otherwise than it was asked for."""
    expected_seconds: float | None
    """What operations of this type took lately on this engine; null while none has ended."""
    deadline_at: Moment | None
    """It is overdue when it is still open then."""
    cancellable: bool
    requested_by: RequestedBy | None
    """Null for what an operator or the service itself began."""
    request_id: str | None
    workflow_id: str | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class OperationReference(Struct, kw_only=True):
    """The operation that an answer accepted, as it was when the answer was made."""

    uuid: UUID
    status: OperationStatus
