"""Errors of operations."""

from types import MappingProxyType

from app.core.errors.base import AppError


class OperationNotCancellable(AppError):
    """The operation has ended, has begun a step that can't be undone, or is not the caller's to cancel."""

    code, status = "operation_not_cancellable", 409
    example_details = MappingProxyType({"status": "running", "step": "destroy"})

    def __init__(self, message: str, *, status: str, step: str | None = None) -> None:
        """`status` is the operation's; `step` the name of the step that can't be undone."""
        super().__init__(message, details={"status": status, "step": step})


class OperationEnded(AppError):
    """The operation has ended: there is nothing to try again."""

    code, status = "operation_ended", 409
    example_details = MappingProxyType({"status": "succeeded"})

    def __init__(self, status: str) -> None:
        """`status` is the operation's."""
        super().__init__(f"The operation has ended: it is {status}.", details={"status": status})
