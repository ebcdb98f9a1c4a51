"""Writing events: one for each change, in the transaction of the change."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from app.audit.drafts import Draft, current_draft, drafting, readable, valid_id
from app.core.context import Actor, ActorKind, current_actor, current_request_id
from app.store.session import Statement, execute, transaction

SUCCEEDED, REFUSED = "succeeded", "refused"
_SERVICE = Actor(kind=ActorKind.SERVICE)
OPERATOR = Actor(kind=ActorKind.OPERATOR)
"""The actor of what was done by hand in Temporal, which doesn't know by whom."""

_COLUMNS = """actor_kind, user_id, api_key_id, actor_name, action, object, subject_id, team_id, address, request_id,
    outcome, error, changes"""
_VALUES = """$1::text, $2::bigint, $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::text, $10::text,
    $11::text, $12::text, $13::jsonb"""
_INSERT = f"INSERT INTO audit_events ({_COLUMNS}) SELECT {_VALUES} WHERE {{condition}} RETURNING id"
# Counted first: the row of the hour is locked until the commit, so that no number of refusals at once exceeds the most.
_REFUSAL = f"""
WITH counted AS (
    INSERT INTO audit_refusals AS r (user_id, hour, team_id, refusals)
    VALUES ($2::bigint, date_trunc('hour', now()), $8::bigint, 1)
    ON CONFLICT (user_id, hour) DO UPDATE SET refusals = r.refusals + 1 RETURNING refusals
)
INSERT INTO audit_events ({_COLUMNS}) SELECT {_VALUES} FROM counted WHERE refusals <= $14::bigint
"""  # noqa: S608 - our own words


def insertion(draft: Draft, subject: object) -> Statement:
    """The event of a change that is made by one statement, as a step of it. `subject` is what was changed, where the
    draft doesn't say."""
    return Statement(_INSERT, _arguments(draft, SUCCEEDED, subject=subject))


async def append_drafted(subject: object = None) -> None:
    """Writes the event of the change that this task makes, in the transaction of that change; does nothing where there
    is none to write. Call `settle` after the commit."""
    draft = current_draft()
    if draft is not None and not draft.settled:
        await execute(_INSERT.format(condition="true"), *_arguments(draft, SUCCEEDED, subject=subject))


def settle() -> None:
    """Notes that the event is committed, or an equal request's event is there: this task writes no other."""
    draft = current_draft()
    if draft is not None:
        draft.settled = True


async def append_refusal(error: str | None) -> None:
    """Writes that the change was refused, in a transaction of its own or the current one. An hour has no more events of
    a user's refusals than the draft allows; the others are counted. See `app.audit.retention`."""
    draft = current_draft()
    if draft is not None and not draft.settled:
        await execute(_REFUSAL, *_arguments(draft, REFUSED, error=error), draft.refusals)


async def append(
    action: str,
    subject: tuple[str, object],
    *,
    team_id: int | None = None,
    changes: Mapping[str, Sequence[Any]] | None = None,
    actor: Actor | None = None,
) -> None:
    """Writes the event of a change that nobody requested of the API: by an operator's command, or by the service. Call
    it in the change's transaction. `actor` is by default the one who acts in this task, or else the service."""
    draft = Draft(
        action=action,
        object=subject[0],
        id=valid_id(subject[1]),
        team_id=team_id,
        changes=readable(changes) if changes else None,
    )
    await execute(_INSERT.format(condition="true"), *_arguments(draft, SUCCEEDED, actor=actor))


@asynccontextmanager
async def audited() -> AsyncIterator[None]:
    """One transaction with the event of the change that this task makes."""
    async with transaction():
        yield
        await append_drafted()
    settle()


@asynccontextmanager
async def change(action: str, subject: tuple[str, object] | str, *, team_id: int | None = None) -> AsyncIterator[None]:
    """One transaction with the event of a change that nobody requested of the API. `note` adds what becomes known of it
    in the block. `subject` may be the kind of thing alone until then."""
    kind, id = (subject, None) if isinstance(subject, str) else (subject[0], valid_id(subject[1]))
    with drafting(Draft(action=action, object=kind, id=id, team_id=team_id)):
        async with audited():
            yield


def _arguments(
    draft: Draft, outcome: str, *, subject: object = None, error: str | None = None, actor: Actor | None = None
) -> tuple[Any, ...]:
    who = actor or current_actor() or _SERVICE
    id = draft.id if draft.id is not None or subject is None else valid_id(subject)
    return (
        who.kind.value,
        who.user_id,
        who.key_id,
        who.name,
        draft.action,
        draft.object,
        id,
        draft.own_team_id if draft.team_id is None else draft.team_id,
        draft.address,
        current_request_id() or None,
        outcome,
        error,
        None if draft.changes is None else msgspec.json.encode(draft.changes).decode(),
    )
