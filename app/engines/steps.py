"""Spans of what is done on engine hosts: a step of an adapter, and the statements within it, by their first words.

A statement's text is never in a span: it may hold a password, and a tenant's own words.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from app.core.tracing.context import current
from app.core.tracing.spans import NO_SPAN, NoSpan, SpanKind, TraceSpan, span

STEPS = (
    "create",
    "verify_login",
    "create_verified",
    "log_in",
    "restore_credentials",
    "add_credential",
    "retire_credential",
    "put_user",
    "remove_user",
    "log_in_as",
    "open_sessions",
    "set_limits",
    "revoke_access",
    "restore_access",
    "freeze",
    "thaw",
    "reclaim",
    "repair",
    "destroy",
    "copy_schema",
    "load",
    "contents",
    "clear",
    "replace",
    "copy_database",
)
"""Methods of an adapter whose first argument is the tenant."""
_VERBS = frozenset(
    (
        "ALTER",
        "BEGIN",
        "CALL",
        "CHECKSUM",
        "COMMENT",
        "COMMIT",
        "CREATE",
        "DELETE",
        "DO",
        "DROP",
        "FLUSH",
        "GRANT",
        "INSERT",
        "KILL",
        "LOCK",
        "REASSIGN",
        "RENAME",
        "REVOKE",
        "ROLLBACK",
        "SELECT",
        "SET",
        "SHOW",
        "START",
        "TRUNCATE",
        "UNLOCK",
        "UPDATE",
        "WITH",
    )
)
_OBJECTS = frozenset(
    (
        "DATABASE",
        "EVENT",
        "EXTENSION",
        "FUNCTION",
        "INDEX",
        "OWNED",
        "PROCEDURE",
        "ROLE",
        "SCHEMA",
        "TABLE",
        "TRIGGER",
        "USER",
        "VIEW",
    )
)
_LOOKED_AT = 64
"""How many characters of a statement are looked at."""


def traced(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wraps a step of an adapter in a span, where something is traced."""
    step = method.__name__

    @wraps(method)
    async def with_span(adapter: Any, tenant: Any, *arguments: Any, **options: Any) -> Any:
        if current.get() is None:
            return await method(adapter, tenant, *arguments, **options)
        attributes = {
            "db.system.name": adapter.telemetry_name,
            "db.namespace": tenant.name,
            "server.address": adapter.address.host,
            "server.port": adapter.address.port,
        }
        with span(f"{adapter.engine.value} {step}", SpanKind.CLIENT, attributes):
            return await method(adapter, tenant, *arguments, **options)

    return with_span


def statement_span(statement: object) -> TraceSpan | NoSpan:
    """The span of one statement on an engine host, for a `with` block."""
    if current.get() is None:
        return NO_SPAN
    operation = operation_of(statement)
    return span(operation, SpanKind.CLIENT, {"db.operation.name": operation})


def operation_of(statement: object) -> str:
    """The first word of a statement, with the type of object that it is about, as far as they are known here; else
    `statement`."""
    if not isinstance(statement, str):
        return "statement"
    first, second = (*statement[:_LOOKED_AT].upper().split(None, 2), "", "")[:2]
    if first not in _VERBS:
        return "statement"
    return f"{first} {second}" if second in _OBJECTS else first
