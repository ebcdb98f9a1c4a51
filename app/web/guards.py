"""What a route demands before its body is read: a scope, a role, an idempotency key, query parameters that it has."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter
from litestar.types import Scope as ASGIScope
from litestar.typing import FieldDefinition

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import Reach, Scope, grants
from app.core.context import act_as_operator
from app.core.errors import (
    InsufficientScope,
    InvalidField,
    KeyForSomeDatabases,
    MissingRequiredField,
    NotFound,
    OperatorsOnly,
    SessionRequired,
)
from app.web.idempotency import IDEMPOTENCY_HEADER, IDEMPOTENCY_KEY_PATTERN, idempotency_key
from app.web.parameters import parse_uuid

FindTeam = Callable[[str, Sequence[int]], Awaitable[int | None]]
"""Takes an identifier in a path and some teams; returns which of these teams has what the identifier names."""
Belonging = Mapping[str, FindTeam]
"""The functions by the first part of the path, such as `databases` or `backups`."""


def demands(
    scopes: Sequence[Scope], roles: frozenset[Role], *, reach: Reach, needs_key: bool, needs_session: bool = False
) -> Callable[[Request[Any, Any, Any]], Awaitable[None]]:
    """A check of each request. The key needs all of these scopes and has to be for what the operation is about. Its
    user needs one of these roles in the team to which that belongs, and the handler sees the caller only in the teams
    where the user has one of them. With `needs_key` the request needs an Idempotency-Key, with `needs_session` a
    session. It may have no query parameter that the operation doesn't have: a misspelt one would be ignored in silence.

    Call the check before a request is handled, not as one of Litestar's guards: for each guard Litestar copies the
    whole route. It is asynchronous though it seldom waits for anything: a synchronous one would run in a thread.
    """

    async def check(request: Request[Any, Any, Any]) -> None:
        if needs_session and request.user.session_id is None:
            raise SessionRequired
        if reach is Reach.OPERATOR:
            # First: to everybody else, which scopes there are beside it says nothing.
            _check_operator(request.user)
            act_as_operator()
        for scope in scopes:
            if not grants(request.user.scopes, scope):
                raise InsufficientScope(scope.value)
        if request.user.databases is not None:
            _check_reach(request, reach)
        if reach not in (Reach.PERSON, Reach.OPERATOR):
            await _check_roles(request, roles, reach)
        if needs_key:
            _check_idempotency_key(request)
        await check_query(request)

    return check


def _check_operator(caller: Principal) -> None:
    if not caller.operator:
        raise OperatorsOnly("You are not marked as an operator.")
    if caller.narrowed:
        raise OperatorsOnly("This API key is for one team only, or for some databases.")


def _check_reach(request: Request[Any, Any, Any], reach: Reach) -> None:
    """Checks that a key for some databases is for what the operation is about."""
    if reach is Reach.TEAM:
        raise KeyForSomeDatabases
    if reach is Reach.DATABASE:
        uuid = parse_uuid(request.path_params["uuid"])
        if uuid is None or not request.user.reaches(uuid):
            raise NotFound("database")


async def _check_roles(request: Request[Principal, Any, Any], roles: frozenset[Role], reach: Reach) -> None:
    """Raises `InsufficientRole` where the user's role is too small in the team that has what the path names, or in
    every team; and `NotAMember` where the user has left that one, or is in no team."""
    caller = request.user
    if caller.team_ids and not caller.ended_teams and roles.issuperset(caller.team_roles):
        return
    if not roles.issuperset(caller.team_roles):
        caller = caller.limited_to(roles)
    # To a key for some databases, whatever else there is stays unknown.
    if caller.databases is None or reach is Reach.DATABASE:
        barred = [*caller.withheld, *caller.ended_teams]
        team_id = await team_among(request.scope, barred) if barred else None
        if team_id is not None:
            note(team_id=team_id)
            raise caller.refusal(team_id)
    if not caller.team_ids:
        raise caller.refusal_everywhere()
    request.scope["user"] = caller


async def team_among(scope: ASGIScope, teams: Sequence[int]) -> int | None:
    """Which of these teams has what the request's path names, if it names anything."""
    belonging: Belonging = scope["litestar_app"].state.belonging
    parts = scope["path"].removeprefix("/api/v1/").split("/")
    find_team = belonging.get(parts[0]) if len(parts) > 1 else None
    return await find_team(parts[1], teams) if find_team else None


def _check_idempotency_key(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    if len(set(connection.headers.getall(IDEMPOTENCY_HEADER, []))) > 1:
        raise InvalidField(IDEMPOTENCY_HEADER, "A request has one idempotency key.")
    key = idempotency_key(connection)
    if not key:
        raise MissingRequiredField(IDEMPOTENCY_HEADER)
    if not re.fullmatch(IDEMPOTENCY_KEY_PATTERN, key):
        raise InvalidField(IDEMPOTENCY_HEADER, "An idempotency key has 1 to 255 printable ASCII characters.")


async def check_query(request: Request[Any, Any, Any]) -> None:
    """Raises `InvalidField` for a query parameter that the operation doesn't have."""
    if not request.scope["query_string"]:
        return
    known = {parameter.name for _, parameter in query_parameters(request.route_handler)}
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        raise InvalidField(unknown, f"There is no query parameter {unknown}.")


def query_parameters(handler: HTTPRouteHandler) -> list[tuple[FieldDefinition, QueryParameter]]:
    """The query parameters that a route reads, each with the parameter of its function."""
    fields = handler.parsed_fn_signature.parameters.values()
    return [(field, field.kwarg_definition) for field in fields if isinstance(field.kwarg_definition, QueryParameter)]
