"""The shape of sessions on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import asdict

from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.sessions import SessionRecord, SignInMethod
from app.core.clock import Moment
from app.web.envelope import Item


class PersonView(Struct, kw_only=True):
    object: Literal["user"] = "user"
    id: int
    name: str
    email: str


class TeamPlaceView(Struct, kw_only=True):
    """A team of the person, and their role there."""

    id: int
    name: str
    tier: str
    role: Role


class SessionView(Struct, kw_only=True):
    """A person who is signed in with one browser."""

    object: Literal["session"] = "session"
    uuid: UUID
    current: bool
    """Whether it is the one of this request."""
    method: SignInMethod
    """How the person signed in."""
    address: str
    """Where from."""
    user_agent: str
    """What the browser called itself then."""
    created_at: Moment
    last_used_at: Moment
    """To about a minute."""
    expires_at: Moment
    """At the latest."""
    idle_expires_at: Moment
    """When it ends if it isn't used before."""


class CurrentSessionView(SessionView, kw_only=True):
    """The session of this request, and whose it is."""

    user: PersonView
    teams: list[TeamPlaceView]
    """The primary one first."""
    operator: bool
    """Whether the person may do what concerns all teams."""


class CurrentSession(Item[CurrentSessionView | None], kw_only=True):
    """The person's session; null where nobody is signed in."""


class EndedSession(Struct, kw_only=True):
    object: Literal["session"] = "session"
    uuid: UUID
    ended: bool = True


class EndedSessions(Struct, kw_only=True):
    """All sessions of the person have ended, this one too."""

    object: Literal["sessions"] = "sessions"
    ended: int


class FollowedLink(Struct, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=200)]
    """The fragment of the link."""


def session_view(record: SessionRecord, current: int | None) -> SessionView:
    """`current` is the session of the request."""
    return SessionView(
        uuid=record.uuid,
        current=record.id == current,
        method=record.method,
        address=record.address,
        user_agent=record.user_agent,
        created_at=record.created_at,
        last_used_at=record.last_used_at,
        expires_at=record.expires_at,
        idle_expires_at=record.idle_expires_at,
    )


def current_view(record: SessionRecord, caller: Principal) -> CurrentSessionView:
    """The session of this request."""
    places = zip(caller.team_ids, caller.team_names, caller.team_tiers, caller.team_roles, strict=True)
    return CurrentSessionView(
        **asdict(session_view(record, caller.session_id)),
        user=PersonView(id=caller.user_id, name=caller.user_name, email=caller.user_email),
        teams=[TeamPlaceView(id=id, name=name, tier=tier, role=role) for id, name, tier, role in places],
        operator=caller.operator,
    )


class HeldInvitation(Struct, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=128)]


class InvitationPreview(Struct, kw_only=True):
    """The team and the role that an invitation offers."""

    object: Literal["invitation_preview"] = "invitation_preview"
    team: str
    """The team's name."""
    role: Role
    """The role that one gets there."""
    email: str | None
    """For whom alone it is; null for whoever has the link."""
    status: Literal["open", "accepted", "expired"]
    expires_at: Moment
