"""What the audit log gets of each request that may change something."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import structlog
from litestar.handlers import HTTPRouteHandler
from litestar.types import Message, Scope, Send

from app.audit.actions import Action
from app.audit.drafts import Draft, current_draft, valid_id
from app.audit.events import append_refusal, settle
from app.auth.principal import Principal
from app.http.access_log import refusal_of
from app.web.guards import team_among
from app.web.operation import OPT, Operation

_NOT_RECORDED = frozenset({401, 408, 429, 499})
"""Refusals that say nothing of what was asked for: nobody known asked, or somebody asked too often, or went away."""

log = structlog.get_logger(__name__)


def request_draft(scope: Scope, address: str, caller: Principal | None, *, refusals: int) -> Draft | None:
    """The event that the request is to leave; None for one that reads or computes. `refusals` is how many refusals of a
    user leave an event in an hour; 0 for somebody who is about to sign in."""
    declared: Operation | None = scope["route_handler"].opt.get(OPT)
    if declared is None or not isinstance(declared.action, str):
        return None
    kind, parameter = _subject(scope["path_template"], declared.action)
    return Draft(
        action=declared.action,
        object=kind,
        id=None if parameter is None else valid_id(scope["path_params"].get(parameter)),
        own_team_id=caller.team_ids[0] if caller is not None and caller.team_ids else None,
        address=address,
        refusals=refusals,
    )


def recording_refusal(scope: Scope, send: Send) -> Send:
    """Returns a `send` that writes a refusal to the audit log before it sends it. It writes nothing for a request whose
    event is there already, for one that failed because of us, which changed nothing and is to be sent again, and for
    those that `_NOT_RECORDED` has."""

    async def send_recorded(message: Message) -> None:
        if message["type"] == "http.response.start":
            await _record_refusal(scope, message["status"])
        await send(message)

    return send_recorded


async def _record_refusal(scope: Scope, status: int) -> None:
    draft = current_draft()
    if draft is None or draft.settled or not 400 <= status < 500 or status in _NOT_RECORDED:
        return
    error = refusal_of(scope)
    try:
        await _find_team(scope, draft)
        await append_refusal(None if error is None else error.code)
        settle()
    except Exception as fault:
        # Nothing was changed, and the client is to learn why.
        log.warning("refusal_not_recorded", action=draft.action, reason=str(fault) or type(fault).__name__)


async def _find_team(scope: Scope, draft: Draft) -> None:
    """Notes the team that has what the path names, where a caller in several teams was refused before that was looked
    up."""
    caller: Principal | None = scope.get("user")
    if draft.team_id is None and caller is not None and len(caller.readable_teams) > 1:
        draft.team_id = await team_among(scope, caller.readable_teams)


def known_events(handlers: Iterable[tuple[str, HTTPRouteHandler]]) -> tuple[frozenset[str], frozenset[str]]:
    """All actions, and all kinds of things that they are about. `handlers` are the API's, each with its path."""
    declared = [(path, handler.opt[OPT].action) for path, handler in handlers if OPT in handler.opt]
    routes = {(path, action) for path, action in declared if isinstance(action, str)}
    actions = {action for _, action in routes} | {action.value for action in Action}
    kinds = {_subject(path, action)[0] for path, action in routes} | {action.partition(".")[0] for action in actions}
    return frozenset(actions), frozenset(kinds)


@cache
def _subject(path: str, action: str) -> tuple[str, str | None]:
    """The kind of thing that a path is about, and the parameter that has its id: `database` and `uuid` for
    `/api/v1/databases/{uuid}/pauses`. For a path without a parameter, the kind that the action names and None; what is
    made says its id."""
    parts = path.split("/")
    for kind, parameter in pairwise(parts):
        if parameter.startswith("{"):
            return kind.removesuffix("s"), parameter.strip("{}").partition(":")[0]
    return action.partition(".")[0], None
