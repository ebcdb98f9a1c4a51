"""Errors on our side."""

from app.core.errors.base import AppError


class InternalError(AppError):
    """Something unexpected; the log line carries the request id."""

    code, status = "internal_error", 500


class ServiceUnavailable(AppError):
    """Our own database can't be reached. A retry with the same Idempotency-Key shows whether the change was made."""

    code, status = "service_unavailable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})
