"""The API's description, OpenAPI 3.1, generated from the routes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter
from litestar.typing import FieldDefinition

from app.auth.scopes import Reach
from app.backups.examples import EXAMPLE_BACKUP, EXAMPLE_FAILED, EXAMPLE_MISMATCH, EXAMPLE_PROVEN, EXAMPLE_UNTESTED
from app.backups.schemas import BackupView
from app.core import errors
from app.core.errors import AppError
from app.credentials.examples import EXAMPLE_USER
from app.credentials.schemas import USER_NAME
from app.databases.examples import EXAMPLE_DATABASE, EXAMPLE_UUID
from app.databases.schemas import DatabaseView
from app.http.json_schemas import components, reference
from app.http.responses import HEADERS, error_examples, error_responses, responses, share_error_responses
from app.operations.examples import EXAMPLE_OPERATION
from app.operations.schemas import OperationView
from app.outbox.event_types import EventType
from app.web.envelope import ErrorAnswer
from app.web.guards import query_parameters
from app.web.idempotency import IDEMPOTENCY_HEADER, IDEMPOTENCY_KEY_PATTERN
from app.web.operation import OPT, Audience, Operation
from app.webhooks.examples import EXAMPLE_ENDPOINT
from app.webhooks.schemas import EndpointView

_EVERY = (
    errors.Unauthorized,
    errors.InvalidApiKey,
    errors.ApiKeyExpired,
    errors.IpNotAllowed,
    errors.NotAMember,
    errors.RateLimitExceeded,
    errors.TooManyInFlight,
    errors.MonthlyQuotaExceeded,
    # A query parameter that the operation doesn't have.
    errors.InvalidField,
    errors.InternalError,
    errors.ServiceUnavailable,
)
_OF_SESSIONS = (errors.SessionEnded, errors.SessionRequired, errors.CrossOriginRefused)
_ENTRIES = {
    Audience.CALLER: "Any valid key.",
    Audience.SESSION: "A person who is signed in to the console.",
    Audience.ANYBODY: "Anybody, from a page of the same origin.",
}
_WITH_BODY = (
    errors.MalformedJSON,
    errors.RequestTimeout,
    errors.PayloadTooLarge,
    errors.MissingRequiredField,
    errors.InvalidField,
)
# The idempotency fingerprint covers the body, so it is read even if the operation has none.
_IDEMPOTENT = (
    errors.MalformedJSON,
    errors.RequestTimeout,
    errors.PayloadTooLarge,
    errors.IdempotencyKeyConflict,
    errors.IdempotencyKeyInProgress,
    errors.MissingRequiredField,
    errors.InvalidField,
)

_DESCRIPTION = (
    "Isolated PostgreSQL and MySQL databases on your own servers.\n\n"
    "A path that doesn't exist answers 404 `not_found`, a method that a path doesn't have 405 `method_not_allowed` "
    "with `Allow`. New fields and operations may be added at any time: tolerate fields that you don't know."
)
_PATH_SCHEMAS: dict[str, dict[str, Any]] = {
    "uuid": {"type": "string", "format": "uuid"},
    "name": {"type": "string", "pattern": f"^{USER_NAME}$"},
}
"""The schemas of path parameters that are no numbers."""
_EXAMPLES: dict[str, Any] = {
    "uuid": EXAMPLE_UUID,
    "name": EXAMPLE_USER.name,
    "starting_after": EXAMPLE_UUID,
    "limit": 25,
}
_WEBHOOK_HEADERS = {
    "X-Service-Signature": ("`sha256=` and the hex HMAC-SHA256 of the raw body under the endpoint's secret.", True),
    "X-Service-Event": ("The event's name.", True),
    "webhook-id": ("The same for every attempt: a repeated delivery can be recognised by it.", True),
    "webhook-timestamp": ("When this attempt was signed, in seconds since 1970.", True),
    "webhook-signature": ("Signatures of Standard Webhooks, divided by blanks, of every secret in force.", True),
    "X-Service-Signature-Previous": ("The same as `X-Service-Signature` under the secret lately replaced.", False),
}
"""The description, and whether every delivery has the header."""
_TAGS = {
    "databases": "Create, list, read, change, delete and undelete databases, and apply blueprints to them.",
    "deleted_databases": "Deleted databases whose data is kept for a while, in which they can be undeleted.",
    "operations": "Changes that take time: how far each is, why it waits, what became of it.",
    "credential_rotations": "How far the replacement of a database's password is.",
    "backups": "Backups of databases, those of deleted ones too, and what is known of each by restoring it.",
    "database_types": "What can be asked for: engines and their regions.",
    "usage": "What databases used, by the hour: time, storage, backups.",
    "blueprints": "SQL that is saved under a name.",
    "blueprint_validations": "What a script holds, and for which engines it is.",
    "blueprint_applications": "How far the application of a blueprint is, and what it ran.",
    "query_executions": "Questions and orders in natural language.",
    "api_keys": "Keys that keys make: each may do no more than the one that asked for it.",
    "audit_events": "Who did what in your teams, and who was refused what.",
    "teams": "Teams, who is in them with which role, and who is invited.",
    "invitation_acceptances": "Joining a team by the token of an invitation.",
    "invitation_previews": "What an invitation is to, for who has its token.",
    "webhook_endpoints": "The endpoints that receive events, and the outcome of each delivery.",
    "operator": "What concerns all teams, for operators: hosts, pools, findings, everyone's operations.",
    "me": "The caller and the key.",
    "session": "Who is signed in to the console.",
    "sessions": "The browsers in which somebody is signed in.",
    "passkey_challenges": "Beginning to add a passkey.",
    "passkeys": "The passkeys of the person who is signed in.",
    "sign_in_challenges": "Beginning to sign in with a passkey.",
    "sign_in_methods": "By what people can sign in.",
    "sign_in_redirects": "Beginning to sign in through a provider.",
    "sign_ins": "Signing in to the console.",
}
"""The descriptions by the resource in the path, in reading order."""
_SUBJECTS: dict[EventType, tuple[type[msgspec.Struct], msgspec.Struct]] = {
    EventType.PING: (EndpointView, EXAMPLE_ENDPOINT),
    EventType.BACKUP_COMPLETED: (BackupView, EXAMPLE_BACKUP),
    EventType.BACKUP_FAILED: (BackupView, EXAMPLE_FAILED),
    EventType.BACKUP_PROVEN: (BackupView, EXAMPLE_PROVEN),
    EventType.BACKUP_MISMATCH: (BackupView, EXAMPLE_MISMATCH),
    EventType.BACKUP_TEST_FAILED: (BackupView, EXAMPLE_UNTESTED),
    EventType.OPERATION_OVERDUE: (OperationView, EXAMPLE_OPERATION),
}
"""What an event is about, with an example, where it isn't a database."""
_TYPES: dict[Any, str] = {int: "integer", bool: "boolean", str: "string"}


def document(handlers: Iterable[tuple[str, HTTPRouteHandler]]) -> dict[str, Any]:
    """The description of these handlers, each with its path (`/api/v1/databases/{uuid}`)."""
    # Litestar doesn't keep a path's handlers in a fixed order.
    described = sorted(
        ((path, handler) for path, handler in handlers if OPT in handler.opt),
        key=lambda found: (found[0], sorted(found[1].http_methods)),
    )
    operations: list[Operation] = [handler.opt[OPT] for _, handler in described]
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for path, handler in described:
        for method in sorted(handler.http_methods):
            paths[path][method.lower()] = _operation(path, handler)
    shared = share_error_responses([operation for path in paths.values() for operation in path.values()])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": version("headwater"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": dict(paths),
        "webhooks": {event.value: _webhook(event) for event in EventType},
        "components": {
            "schemas": components(
                (operation.body for operation in operations if operation.body),
                [ErrorAnswer, *(body for operation in operations for body in operation.answers.values() if body)],
            ),
            # No operation answers 405: it is for the methods that a path doesn't have.
            "responses": shared | {"MethodNotAllowed": error_responses([errors.MethodNotAllowed])["405"]},
            "examples": error_examples(),
            "headers": HEADERS,
            "securitySchemes": {
                "api_key": {"type": "http", "scheme": "bearer", "description": "An API key, `pk_live_…`."},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "headwater_session",
                    "description": "A person's session in the console, which every operation with a key takes too. "
                    "Over TLS its name begins with `__Host-`. What changes something has to come from a page of "
                    "the same origin.",
                },
            },
        },
    }


def _operation(path: str, handler: HTTPRouteHandler) -> dict[str, Any]:
    declared: Operation = handler.opt[OPT]
    names = ", ".join(f"`{scope.value}`" for scope in declared.scopes)
    described: dict[str, Any] = {
        "operationId": handler.operation_id,
        "summary": handler.summary,
        "description": f"Scopes: {names}." if names else _ENTRIES[declared.entry],
        "tags": [path.split("/")[3]],
        "security": _security(declared),
        "parameters": list(_parameters(path, handler, declared)),
        "responses": responses(declared) | error_responses(_errors(path, declared, handler)),
    }
    if declared.action is not None:
        described["x-audit-action"] = declared.action if isinstance(declared.action, str) else None
    if declared.body is not None:
        media = {"schema": reference(declared.body)} | ({"example": declared.example} if declared.example else {})
        described["requestBody"] = {"required": True, "content": {"application/json": media}}
    return described


def _security(declared: Operation) -> list[dict[str, list[str]]]:
    if declared.entry is Audience.CALLER:
        return [{"api_key": [scope.value for scope in declared.scopes]}]
    return [{"session": []}] if declared.entry is Audience.SESSION else []


def _parameters(path: str, handler: HTTPRouteHandler, declared: Operation) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", path):
        schema = _PATH_SCHEMAS.get(name, {"type": "integer", "minimum": 1})
        yield {"name": name, "in": "path", "required": True, "schema": schema} | _example(name)
    for field, parameter in query_parameters(handler):
        schema = _query_schema(field, parameter)
        yield {
            "name": parameter.name,
            "in": "query",
            "description": parameter.description,
            "schema": schema,
        } | _query_example(parameter.name, schema)
    if declared.events is not None:
        yield {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The `id` of the last event that came, of a client that comes back.",
            "schema": {"type": "string"},
        }
    if declared.idempotent:
        yield {
            "name": IDEMPOTENCY_HEADER,
            "in": "header",
            "required": True,
            # No example: a page that sends requests would use it for every change.
            "description": "A fresh uuid for each change; the same again to retry one.",
            "schema": {"type": "string", "pattern": IDEMPOTENCY_KEY_PATTERN},
        }


def _example(name: str | None) -> dict[str, Any]:
    return {"example": _EXAMPLES[name]} if name in _EXAMPLES else {}


def _query_example(name: str | None, schema: dict[str, Any]) -> dict[str, Any]:
    """No example for a cursor that is no uuid: only one that the API has given out is valid."""
    return {} if name == "starting_after" and schema.get("format") != "uuid" else _example(name)


def _query_schema(field: FieldDefinition, parameter: QueryParameter) -> dict[str, Any]:
    if field.annotation == tuple[str, ...]:
        return {"type": "array", "items": {"type": "string"}} | (parameter.schema_extra or {})
    kind = next(name for python, name in _TYPES.items() if field.annotation in (python, python | None))
    schema: dict[str, Any] = {"type": kind}
    if parameter.ge is not None:
        schema["minimum"] = int(parameter.ge)
    if parameter.le is not None:
        schema["maximum"] = int(parameter.le)
    if field.default is not None:
        schema["default"] = field.default
    return schema | (parameter.schema_extra or {})


def _errors(path: str, declared: Operation, handler: HTTPRouteHandler) -> Sequence[type[AppError]]:
    return (
        *_EVERY,
        *(_OF_SESSIONS if declared.entry is Audience.SESSION else ()),
        *((errors.InsufficientScope,) if declared.scopes else ()),
        *((errors.InsufficientRole,) if declared.reach not in (Reach.PERSON, Reach.OPERATOR) else ()),
        *((errors.OperatorsOnly,) if declared.reach is Reach.OPERATOR else ()),
        *((errors.KeyForSomeDatabases,) if declared.reach is Reach.TEAM else ()),
        *((errors.NotFound,) if "{" in path else ()),
        *(_WITH_BODY if declared.body is not None else ()),
        *(_IDEMPOTENT if declared.idempotent else ()),
        *declared.errors,
    )


def _webhook(event: EventType) -> dict[str, Any]:
    subject, example = _SUBJECTS.get(event, (DatabaseView, EXAMPLE_DATABASE))
    payload = {
        "type": "object",
        "required": ["event", "timestamp", "data"],
        "properties": {
            "event": {"const": event.value},
            "timestamp": {"type": "string", "format": "date-time"},
            "data": reference(subject),
        },
    }
    body = {
        "event": event.value,
        "timestamp": "2026-11-20T08:00:00.000000+00:00",
        "data": msgspec.to_builtins(example),
    }
    return {
        "post": {
            "operationId": "on" + "".join(part.title() for part in re.split(r"[._]", event.value)),
            "summary": event.description,
            "security": [],
            "parameters": [_webhook_header(event, name, *described) for name, described in _WEBHOOK_HEADERS.items()],
            "requestBody": {"required": True, "content": {"application/json": {"schema": payload, "example": body}}},
            "responses": {"2XX": {"description": "Any such answer counts as delivered."}},
        }
    }


def _webhook_header(event: EventType, name: str, description: str, required: bool) -> dict[str, Any]:
    schema = {"const": event.value} if name == "X-Service-Event" else {"type": "string"}
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def formatted(description: dict[str, Any]) -> bytes:
    """The form that is served and committed."""
    return msgspec.json.format(msgspec.json.encode(description), indent=2) + b"\n"
