"""The shapes of teams, members and invitations on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.auth.invitations import InvitationRecord
from app.auth.members import MemberRecord
from app.auth.roles import Role
from app.auth.teams import TeamDetails
from app.core.clock import Moment
from app.core.context import current_request_id

DAY_SECONDS = 86_400
DEFAULT_INVITATION_SECONDS = 7 * DAY_SECONDS
_MOST_INVITATION_SECONDS, _LEAST_INVITATION_SECONDS = 30 * DAY_SECONDS, 60

TeamName = Annotated[str, Meta(min_length=1, max_length=255)]
RoleName = Annotated[str, Meta(max_length=64, extra_json_schema={"enum": [role.value for role in Role]})]
"""Checked by the service, whose refusal names the roles that there are."""
UserId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Email = Annotated[str, Meta(min_length=3, max_length=320)]
Token = Annotated[str, Meta(min_length=1, max_length=128)]


class TeamFields(Struct, kw_only=True, forbid_unknown_fields=True):
    name: TeamName


class AddMember(Struct, kw_only=True, forbid_unknown_fields=True):
    """A person who is in another team with you, named by either `user_id` or `email`."""

    user_id: UserId | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    role: RoleName


class ChangeMember(Struct, kw_only=True, forbid_unknown_fields=True):
    role: RoleName


class Invite(Struct, kw_only=True, forbid_unknown_fields=True):
    role: RoleName
    expires_in_seconds: Annotated[int, Meta(ge=_LEAST_INVITATION_SECONDS, le=_MOST_INVITATION_SECONDS)] = (
        DEFAULT_INVITATION_SECONDS
    )
    email: Annotated[str, Meta(min_length=3, max_length=254, pattern=r"\A[^@\s\x00]+@[^@\s\x00]+\Z")] | None = None
    """Only a person with this address may accept. One who has no account yet gets one through the installation's
    provider, which has to have verified the address. Null: anybody with the link may accept."""


class AcceptInvitation(Struct, kw_only=True, forbid_unknown_fields=True):
    token: Token


class TeamView(Struct, kw_only=True):
    """A team, with your role in it."""

    object: Literal["team"] = "team"
    id: int
    name: str
    tier: str
    queries: str
    """How far its questions in natural language may go."""
    role: Role
    created_at: Moment


class DeletedTeam(Struct, kw_only=True):
    object: Literal["team"] = "team"
    id: int
    deleted: bool = True


class MemberView(Struct, kw_only=True):
    object: Literal["team_member"] = "team_member"
    team_id: int
    user_id: int
    name: str
    email: str
    role: Role
    joined_at: Moment


class RemovedMember(Struct, kw_only=True):
    object: Literal["team_member"] = "team_member"
    team_id: int
    user_id: int
    removed: bool = True


class InvitationView(Struct, kw_only=True):
    object: Literal["invitation"] = "invitation"
    id: int
    team_id: int
    role: Role
    email: str | None
    """For whom alone it is."""
    status: Literal["open", "accepted", "expired"]
    invited_by: int | None
    """A user."""
    accepted_by: int | None
    accepted_at: Moment | None
    expires_at: Moment
    created_at: Moment


class InvitationWithToken(Struct, kw_only=True):
    """An invitation with its token, which is shown this once and never again."""

    message: str
    data: InvitationView
    token: str
    link: str
    """The same for a person to follow: a path on the service's address. What follows the `#` is in no server's log."""
    request_id: str = field(default_factory=current_request_id)
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this Idempotency-Key did it, and this is the answer that it got."""


class WithdrawnInvitation(Struct, kw_only=True):
    object: Literal["invitation"] = "invitation"
    id: int
    withdrawn: bool = True


def team_view(details: TeamDetails, role: Role) -> TeamView:
    return TeamView(
        id=details.id,
        name=details.name,
        tier=details.tier,
        queries=details.queries,
        role=role,
        created_at=details.created_at,
    )


def member_view(record: MemberRecord) -> MemberView:
    return MemberView(
        team_id=record.team_id,
        user_id=record.user_id,
        name=record.name,
        email=record.email,
        role=record.role,
        joined_at=record.joined_at,
    )


def invitation_view(record: InvitationRecord) -> InvitationView:
    if record.accepted_at is not None:
        status: Literal["open", "accepted", "expired"] = "accepted"
    else:
        status = "expired" if record.expired else "open"
    return InvitationView(
        id=record.id,
        team_id=record.team_id,
        role=record.role,
        email=record.email,
        status=status,
        invited_by=record.invited_by,
        accepted_by=record.accepted_by,
        accepted_at=record.accepted_at,
        expires_at=record.expires_at,
        created_at=record.created_at,
    )


def link_of(token: str) -> str:
    return f"/console/invitations#{token}"
