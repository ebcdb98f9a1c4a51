"""What a route says of itself: one declaration from which its guards, its body and its documentation follow."""

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from app.auth.roles import Role, roles_that_may
from app.auth.scopes import Reach, Scope
from app.core.errors import AppError
from app.web.body import JSONBody
from app.web.guards import check_query, demands

OPT = "operation"
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
"""Methods by which something may change. RFC 9110, section 9.2.1."""
_ACTION = re.compile(r"[a-z_]+\.[a-z_]+")


class Computes(Enum):
    """Marks an operation that changes nothing, although its method is one of those that change things."""

    COMPUTES = "computes"


COMPUTES = Computes.COMPUTES
"""What such an operation declares as its action: it leaves no event in the audit log."""


class Audience(Enum):
    """The callers that may use an operation."""

    CALLER = "caller"
    """Programs by their key, and people by their session."""
    SESSION = "session"
    """People who are signed in, and nobody by a key."""
    ANYBODY = "anybody"
    """Also those who aren't signed in yet."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation declares, for the API's description. `answers` maps a status to the struct that is the body, or
    to None where there is no body; `examples` to one such body. `errors` are those that the operation itself may meet,
    beyond those that its parts bring along. `links` are the operations that take an identifier of the answers,
    `data.uuid` or what `link_by` names. `events` is the event's name where the answer is a stream of events; the struct
    is each one's data. `texts` are examples of the answers with status 200 that are no JSON, by their media type.
    `action` is what the audit log calls the operation; None for one that reads."""

    entry: Audience
    scopes: tuple[Scope, ...]
    role: Role | None
    reach: Reach
    answers: dict[int, Any]
    examples: dict[int, msgspec.Struct]
    errors: tuple[type[AppError], ...]
    body: type[msgspec.Struct] | None
    example: dict[str, Any] | None
    idempotent: bool
    links: tuple[str, ...]
    link_by: str
    events: str | None
    texts: dict[str, str]
    action: str | Computes | None


def operation(
    operation_id: str,
    summary: str,
    *,
    action: str | Computes | None = None,
    entry: Audience = Audience.CALLER,
    answers: dict[int, Any],
    examples: dict[int, msgspec.Struct],
    scopes: tuple[Scope, ...] = (),
    role: Role | None = None,
    reach: Reach = Reach.TEAM,
    errors: tuple[type[AppError], ...] = (),
    body: type[msgspec.Struct] | None = None,
    example: dict[str, Any] | None = None,
    idempotent: bool = False,
    links: tuple[str, ...] = (),
    link_by: str = "uuid",
    events: str | None = None,
    texts: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The keyword arguments of a route's decorator. `body` is the struct that `data` is read as, `example` one such
    body; `idempotent` operations demand an Idempotency-Key. `role` is the least role that may do it in a team, where
    the scopes don't say so. Keys that are for some databases only are refused unless `reach` says that the operation is
    about one, or keeps to them. `action` has the form `subject.verb`; what changes something has to declare one: see
    `check_actions`. Raises `ValueError` for an action of another form."""
    if isinstance(action, str) and not _ACTION.fullmatch(action):
        raise ValueError(f"{operation_id}: an action is 'subject.verb', not {action!r}")
    declared = Operation(
        entry=entry,
        scopes=scopes,
        role=role,
        reach=reach,
        answers=answers,
        examples=examples,
        errors=errors,
        body=body,
        example=example,
        idempotent=idempotent,
        links=links,
        link_by=link_by,
        events=events,
        texts=texts or {},
        action=action,
    )
    arguments: dict[str, Any] = {
        "operation_id": operation_id,
        "summary": summary,
        "status_code": min(answers),
        "before_request": check_query
        if entry is Audience.ANYBODY
        else demands(
            scopes,
            roles_that_may(scopes, role),
            reach=reach,
            needs_key=idempotent,
            needs_session=entry is Audience.SESSION,
        ),
        "opt": {OPT: declared},
    }
    if body is not None:
        arguments |= {"dto": JSONBody[body], "return_dto": None}  # type: ignore[valid-type] # a class made at runtime
    return arguments


def check_actions(handlers: Iterable[HTTPRouteHandler]) -> None:
    """Raises `ValueError` for a route by which something may change and which doesn't declare its action, and for one
    that reads and declares one."""
    for handler in handlers:
        declared: Operation | None = handler.opt.get(OPT)
        if declared is None:
            continue
        changes = bool(handler.http_methods & CHANGING)
        if changes and declared.action is None:
            raise ValueError(f"{handler.operation_id} declares no action for the audit log; see operation(action=…)")
        if not changes and declared.action is not None:
            raise ValueError(f"{handler.operation_id} reads, and declares an action for the audit log")
