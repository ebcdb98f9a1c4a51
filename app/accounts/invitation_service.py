"""Invitations into teams, and their acceptance. Every change belongs in the request's transaction."""

from app.accounts import member_service
from app.accounts.team_service import check_joining, owned
from app.audit.drafts import note
from app.auth import invitations, members, users
from app.auth.invitations import InvitationRecord
from app.auth.members import MemberRecord
from app.auth.principal import Principal
from app.auth.roles import Role
from app.core.errors import (
    InvalidField,
    InvitationEnded,
    InvitationForAnother,
    NotFound,
    TeamLimitReached,
    require_found,
)

WHAT = "invitation"


async def invite(
    principal: Principal, team_id: int, role: Role, *, seconds: int, most: int, email: str | None = None
) -> tuple[InvitationRecord, str]:
    """Makes an invitation; returns it and its token. `most` is how many of a team may be open, `email` the one address
    that may accept it. Raises `NotFound`, `InsufficientRole` or `TeamLimitReached`."""
    await member_service.lock(principal, team_id, role)
    if await invitations.count_open(team_id) >= most:
        raise TeamLimitReached("open_invitations", most)
    made, token = await invitations.insert_invitation(team_id, role, by=principal.user_id, seconds=seconds, email=email)
    note(subject=(WHAT, made), changes={"role": (None, role)})
    return require_found(await invitations.find_invitation(team_id, made), WHAT), token


async def list_page(
    principal: Principal, team_id: int, *, starting_after: int | None, limit: int
) -> tuple[list[InvitationRecord], bool]:
    """A page, newest first, and whether more follows. Raises `NotFound`, and `InvalidField` for a cursor that no
    invitation had, or another team's has; that of an invitation that is gone still works."""
    owned(principal, team_id)
    if starting_after is not None and not await invitations.may_have_been_of(team_id, starting_after):
        raise InvalidField("starting_after", "This is not the id of an invitation of this team.")
    page = await invitations.list_invitations(team_id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def withdraw(principal: Principal, team_id: int, invitation: int) -> InvitationRecord:
    """Withdraws an invitation: its token is worth nothing from now on. Raises `NotFound`, `InvitationEnded` for one
    that was accepted, or `InsufficientRole`."""
    await member_service.lock(principal, team_id)
    record = require_found(await invitations.find_invitation(team_id, invitation), WHAT)
    if record.accepted_at is not None:
        raise InvitationEnded("accepted")
    await invitations.delete_invitation(record.id)
    note(subject=(WHAT, record.id))
    return record


async def accept(principal: Principal, token: str, limits: tuple[int, int]) -> MemberRecord:
    """The caller joins the team. `limits` are as for `member_service.add`. Raises `NotFound`, also for a token that
    was withdrawn, `InvitationEnded`, `InvitationForAnother`, `AlreadyAMember`, `TeamLimitReached`, `TeamsLimitReached`,
    `ExceedsOwnKey` for a key that is for one team only, and what `standing.expect` does."""
    check_joining(principal)
    found = require_found(await invitations.find_by_token(token), WHAT)
    await member_service.lock(None, found.team_id)
    # Again under the lock: of two that accept at once, the second sees what the first one did.
    record = await invitations.find_by_token(token)
    if record is None:
        raise NotFound(WHAT)
    if record.accepted_at is not None:
        raise InvitationEnded("accepted")
    if record.expired:
        raise InvitationEnded("expired")
    if record.email is not None and not record.is_for(await users.email_of(principal.user_id)):
        raise InvitationForAnother
    await member_service.join(principal, record.team_id, principal.user_id, record.role, limits)
    await invitations.note_accepted(record.id, principal.user_id)
    return require_found(await members.find_member(record.team_id, principal.user_id), WHAT)
