"""`/api/v1/audit_events`: who did what in the caller's teams."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter, SkipValidation

from app.audit import records
from app.audit.filters import ACTORS, actor_filter
from app.audit.records import EventFilters
from app.audit.schemas import AuditActor, AuditEventView, AuditSubject, event_view
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import Scope
from app.core.clock import utc_now
from app.core.context import ActorKind
from app.core.errors import InvalidField
from app.quotas.plans import Plans
from app.web.envelope import Page
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, query_moment

_LONGEST = 200
"""Characters of a filter."""
ActorFilter = Annotated[
    str | None,
    QueryParameter(
        name="actor",
        description=f"Only what this one did: {ACTORS}.",
        schema_extra={"pattern": "^((user|key):[1-9][0-9]{0,17}|operator|service)$"},
    ),
]
ActionFilter = Annotated[
    str | None,
    QueryParameter(
        name="action",
        description="Only this action, such as `database.create`: each operation has its own as `x-audit-action`.",
        schema_extra={"maxLength": _LONGEST},
    ),
]
SubjectFilter = Annotated[
    str | None,
    QueryParameter(
        name="subject",
        description="Only what was done to this: `database:UUID`, `api_key:ID` and so on.",
        schema_extra={"maxLength": _LONGEST},
    ),
]
FromFilter = Annotated[
    str | None,
    QueryParameter(
        name="from",
        description="Only events from this moment on, ISO 8601 with an offset.",
        schema_extra={"format": "date-time"},
    ),
]
ToFilter = Annotated[
    str | None,
    QueryParameter(
        name="to", description="Only events before this moment, in the same form.", schema_extra={"format": "date-time"}
    ),
]

EXAMPLE_EVENT = AuditEventView(
    id=4711,
    at=datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
    actor=AuditActor(kind=ActorKind.KEY, user_id=1, api_key_id=12),
    action="database.change",
    subject=AuditSubject(object="database", id="7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"),
    team_id=1,
    address="192.0.2.7",
    request_id="req_3f1c0d9be2a4475d8c6b7a10",
    outcome="succeeded",
    error=None,
    changes={"name": ["orders", "orders-eu"]},
)

Call = Request[Principal, Any, Any]


class AuditServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the route works with."""

    plans: Plans
    actions: frozenset[str]
    """All that there are."""
    objects: frozenset[str]
    """The kinds of things that events are about."""


@get(
    "/audit_events",
    **operation(
        "listAuditEvents",
        "List who did what in your teams, newest first",
        scopes=(Scope.AUDIT_READ,),
        role=Role.ADMIN,
        answers={200: Page[AuditEventView]},
        examples={200: Page(data=[EXAMPLE_EVENT], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_audit_events(
    request: Call,
    services: NamedDependency[SkipValidation[AuditServices]],
    actor: ActorFilter = None,
    action: ActionFilter = None,
    subject: SubjectFilter = None,
    since: FromFilter = None,
    until: ToFilter = None,
    limit: Limit = 25,
    starting_after: StartingAfterId = None,
) -> Page[AuditEventView]:
    caller, after = request.user, cursor_id(starting_after)
    filters = _filters(services, actor, action, subject, since, until)
    now = utc_now()
    teams = {
        team: now - timedelta(days=services.plans.tiers[tier].audit_days)
        for team, tier in zip(caller.team_ids, caller.team_tiers, strict=True)
    }
    page = await records.list_of_teams(teams, filters, after=after, limit=limit + 1)
    if not page and after is not None and not await records.is_of_teams(after, caller.team_ids):
        raise InvalidField("starting_after", "This is not the id of an audit event of yours.")
    return Page(data=[event_view(record) for record in page[:limit]], has_more=len(page) > limit)


def _filters(
    services: AuditServices,
    actor: str | None,
    action: str | None,
    subject: str | None,
    since: str | None,
    until: str | None,
) -> EventFilters:
    """Raises `InvalidField`, which lists what there is."""
    if action is not None and action not in services.actions:
        raise InvalidField("action", f"There is no such action; the actions are {', '.join(sorted(services.actions))}.")
    kind, id = (None, None) if subject is None else _subject(subject, services.objects)
    first = None if since is None else query_moment("from", since)
    last = None if until is None else query_moment("to", until)
    if first is not None and last is not None and first >= last:
        raise InvalidField("to", "It has to be later than 'from'.")
    filters = EventFilters(action=action, object=kind, subject_id=id, since=first, until=last)
    return filters if actor is None else msgspec.structs.replace(filters, **actor_filter(actor))


def _subject(subject: str, objects: frozenset[str]) -> tuple[str, str]:
    kind, _, id = subject.partition(":")
    if kind not in objects or not re.fullmatch(r"[!-~]{1,64}", id):
        known = ", ".join(f"{name}:ID" for name in sorted(objects))
        raise InvalidField("subject", f"Expected one of {known}.")
    return kind, id
