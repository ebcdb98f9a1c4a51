"""Errors on our side."""

from app.core.errors.base import AppError


class InternalError(AppError):
    """Something unexpected; the log line carries the request id."""

    code, status = "internal_error", 500


class ServiceUnavailable(AppError):
    """Our own database can't be reached. Whether the change was made, a retry with the same Idempotency-Key tells."""

    code, status = "service_unavailable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})
