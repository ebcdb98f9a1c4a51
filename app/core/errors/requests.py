"""Errors of a request itself, and of its repetition."""

from types import MappingProxyType
from typing import TypeVar

from app.core.errors.base import AppError

Record = TypeVar("Record")

_MOST_FIELD, _MOST_MESSAGE = 300, 2000
"""Characters of a field's name and of a message. Either may repeat what a client sent, up to a megabyte, and the
answer may be stored for its Idempotency-Key."""


class MalformedJSON(AppError):
    """The body is not JSON."""

    code, status = "malformed_json", 400


class NotFound(AppError):
    """The resource is unknown or not the caller's; the two can't be distinguished."""

    code, status = "not_found", 404

    def __init__(self, what: str) -> None:
        super().__init__(f"No such {what}.")


def require_found(record: Record | None, what: str) -> Record:
    """The record that a caller asked for; `what` names its kind. Raises `NotFound` for None."""
    if record is None:
        raise NotFound(what)
    return record


class MethodNotAllowed(AppError):
    """The path exists, the method on it doesn't."""

    code, status = "method_not_allowed", 405


class IdempotencyKeyConflict(AppError):
    """The key came before with another request."""

    code, status, transient = "idempotency_key_conflict", 409, True


class IdempotencyKeyInProgress(AppError):
    """The first request with this key is still under way."""

    code, status, transient = "idempotency_key_in_progress", 409, True


class RequestTimeout(AppError):
    """The body did not come in time. The connection is closed."""

    code, status = "request_timeout", 408

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The body was not sent within {seconds:g} seconds.", headers={"Connection": "close"})


class PayloadTooLarge(AppError):
    """The body is larger than 1 MiB."""

    code, status = "payload_too_large", 413


class MissingRequiredField(AppError):
    """A required field, parameter or header is missing."""

    code, status = "missing_required_field", 422
    example_details = MappingProxyType({"field": "name"})

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is required.", details={"field": field})


class InvalidField(AppError):
    """A field, parameter or header has an unusable value, or is unknown."""

    code, status = "invalid_field", 422
    example_details = MappingProxyType({"field": "name"})

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message[:_MOST_MESSAGE], details={"field": field[:_MOST_FIELD]})
