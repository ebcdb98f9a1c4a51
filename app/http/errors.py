"""Translating exceptions to the error envelope. Interface specification, sections 2.10 and 7."""

from collections.abc import Mapping
from typing import Any

import asyncpg
import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.status_codes import HTTP_413_REQUEST_ENTITY_TOO_LARGE
from litestar.types import ExceptionHandlersMap
from msgspec import UNSET

from app.core.errors import (
    AppError,
    InternalError,
    InvalidField,
    MalformedJSON,
    MethodNotAllowed,
    MissingRequiredField,
    NotFound,
    PayloadTooLarge,
    ServiceUnavailable,
)
from app.http.access_log import note_refusal
from app.web.envelope import ErrorAnswer, ErrorBody, encode

log = structlog.get_logger(__name__)

_STORE_AWAY = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InternalClientError,  # of a connection that broke in the middle of an answer
    TimeoutError,
)
"""Errors while our own database restarts or can't be reached."""

_STORE_AWAY_MESSAGE = (
    "The service can't reach its own database. Retry with the same Idempotency-Key: if the change was made, the retry "
    "takes it up and doesn't make it again."
)

Call = Request[Any, Any, Any]


def respond(request: Call, error: AppError) -> Response[bytes]:
    # A stored error must not keep its stack frames alive: they hold the request's unread body, and until that is
    # released the server doesn't close the connection.
    error.__traceback__ = error.__context__ = None
    note_refusal(request.scope, error)
    body = ErrorBody(code=error.code, message=error.message, details=UNSET if error.details is None else error.details)
    return Response(
        encode(ErrorAnswer(error=body)),
        status_code=error.status,
        headers=error.headers,
        media_type=MediaType.JSON,
    )


def _on_http_exception(request: Call, fault: HTTPException) -> Response[bytes]:
    return respond(request, _translate(request, fault))


def _translate(request: Call, fault: HTTPException) -> AppError:
    if isinstance(fault, NotFoundException):
        return NotFound("path")
    if isinstance(fault, MethodNotAllowedException):
        message = f"{request.method} is not allowed on this path."
        methods = (fault.headers or {}).get("allow", "").split(", ")
        return MethodNotAllowed(message, headers={"Allow": ", ".join(sorted(methods))})
    if isinstance(fault, ValidationException):
        return _invalid_parameter(fault)
    if fault.status_code == HTTP_413_REQUEST_ENTITY_TOO_LARGE:
        return PayloadTooLarge("The body is larger than 1 MiB.")
    if fault.status_code == 400:
        return MalformedJSON(fault.detail)
    log.error("unexpected_http_exception", exc_info=fault)
    return InternalError("Something went wrong on our side.")


def _invalid_parameter(fault: ValidationException) -> AppError:
    extra = fault.extra
    first: Mapping[str, Any] = extra[0] if isinstance(extra, list) and extra else {}
    name = first.get("key")
    if name == "data":
        return MalformedJSON("The body is missing.")
    if name:
        return InvalidField(str(name), f"{name}: {first.get('message', 'unusable value')}.")
    if "Missing required" in fault.detail:
        return MissingRequiredField(fault.detail.split("'")[1])
    return InvalidField("request", fault.detail)


def _on_store_away(request: Call, fault: Exception) -> Response[bytes]:
    log.warning("store_unavailable", reason=str(fault) or type(fault).__name__)
    return respond(request, ServiceUnavailable(_STORE_AWAY_MESSAGE))


def _on_unexpected(request: Call, fault: Exception) -> Response[bytes]:
    log.error("unexpected_error", method=request.method, route=request.scope.get("path_template"), exc_info=fault)
    message = "Something went wrong on our side. Retry with the same Idempotency-Key."
    return respond(request, InternalError(message))


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    AppError: respond,
    HTTPException: _on_http_exception,
    Exception: _on_unexpected,
    **dict.fromkeys(_STORE_AWAY, _on_store_away),
}
