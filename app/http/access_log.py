"""The access log: one line for each request, whatever its outcome."""

import logging
from typing import Any

import msgspec
from litestar.types import HTTPScope, Scope

from app.auth.principal import Principal
from app.core.errors import AppError
from app.core.logging import LogLine, write_line
from app.web.parameters import parse_id, parse_uuid

_REFUSAL = "refusal"
"""The key in a request's state for the error that it was answered with."""


def refusal_of(scope: Scope) -> AppError | None:
    """The error that the request is answered with."""
    found: AppError | None = (scope.get("state") or {}).get(_REFUSAL)
    return found


class AccessLine(LogLine, kw_only=True, omit_defaults=True):
    """Contains no text of the client: the route's template but no path, no query, no header, no body."""

    event: str = msgspec.field(default_factory=lambda: "request")
    logger: str = msgspec.field(default_factory=lambda: "app.http.access")
    method: str
    route: str
    status: int | None = None
    """None when no answer was begun."""
    broken_off: bool = False
    """The answer was not sent completely: the client disconnected, or the process stopped."""
    duration_ms: float
    client: str | None = None
    """The client's address; behind trusted proxies, the one that they report."""
    user_id: int | None = None
    team_id: int | None = None
    """The caller's primary team."""
    key_id: int | None = None
    session_id: int | None = None
    resource: str | None = None
    """The identifier in the path, if it has a valid form."""
    error: str | None = None
    """The error's code."""


def note_refusal(scope: HTTPScope, error: AppError) -> None:
    """Stores the error for the request's line."""
    scope["state"][_REFUSAL] = error


def log_request(
    scope: HTTPScope, *, method: str, route: str, status: int | None, completed: bool, seconds: float
) -> None:
    """`method` and `route` are known ones, never a client's own text."""
    state: dict[str, Any] = scope.get("state") or {}
    refusal: AppError | None = state.get(_REFUSAL)
    caller = caller_of(scope)
    line = AccessLine(
        method=method,
        route=route,
        status=status,
        broken_off=not completed,
        duration_ms=round(1000 * seconds, 3),
        client=state.get("client_address") or _peer(scope),
        resource=resource_of(scope),
    )
    if caller is not None:
        line.user_id, line.key_id, line.session_id = caller.user_id, caller.key_id or None, caller.session_id
        line.team_id = caller.team_ids[0] if caller.team_ids else None
    elif refusal is not None:
        line.key_id = refusal.key_id
    if refusal is not None:
        line.error = refusal.code
    failed = status is not None and status >= 500
    write_line(logging.ERROR if failed else logging.INFO, line)


def _peer(scope: HTTPScope) -> str | None:
    return scope["client"][0] if scope["client"] else None


def caller_of(scope: HTTPScope) -> Principal | None:
    """The authenticated caller; None if there is none."""
    caller: Principal | None = scope.get("user")
    return caller


def resource_of(scope: HTTPScope) -> str | None:
    """The identifier in the path, if it has a valid form."""
    for value in (scope.get("path_params") or {}).values():
        text = str(value)
        if parse_uuid(text) or parse_id(text):
            return text
    return None
