"""The shape of events for those who read them."""

from typing import Any, Literal

from msgspec import Struct

from app.audit.records import EventRecord
from app.core.clock import Moment
from app.core.context import ActorKind

Outcome = Literal["succeeded", "refused"]


class AuditActor(Struct, kw_only=True):
    """`user_id` and `api_key_id` are null for operators and for the service itself."""

    kind: ActorKind
    user_id: int | None
    api_key_id: int | None


class AuditSubject(Struct, kw_only=True):
    """The object that was changed, or that a refused request was to change."""

    object: str
    """The type of the object, such as `database`."""
    id: str | None
    """Null for an object that was not made."""


class AuditEventView(Struct, kw_only=True):
    """A change, or a refusal: who asked for it, when, and what it is about."""

    object: Literal["audit_event"] = "audit_event"
    id: int
    at: Moment
    actor: AuditActor
    action: str
    subject: AuditSubject
    team_id: int
    address: str | None
    """The address that the request came from; null without a request."""
    request_id: str | None
    outcome: Outcome
    error: str | None
    """The code of the refusal."""
    changes: dict[str, list[Any]] | None
    """What each field was, and what it is."""


def event_view(record: EventRecord) -> AuditEventView:
    assert record.team_id is not None, "it is a team's"
    return AuditEventView(
        id=record.id,
        at=record.at,
        actor=AuditActor(kind=ActorKind(record.actor_kind), user_id=record.user_id, api_key_id=record.api_key_id),
        action=record.action,
        subject=AuditSubject(object=record.object, id=record.subject_id),
        team_id=record.team_id,
        address=record.address,
        request_id=record.request_id,
        outcome="succeeded" if record.outcome == "succeeded" else "refused",
        error=record.error,
        changes=record.changes,
    )
