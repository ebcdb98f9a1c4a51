"""What people do with the members of their teams, and operators with those of any team. Every change belongs in a
transaction of the caller's.

The team is locked first, then the person, and the roles that decide are read under these locks. So the last owner
stays, and a role that was just taken from somebody gives nothing any more. The caller's key or session is looked at
again after each lock, which may have been waited for.
"""

from app.accounts.team_service import WHAT as TEAM
from app.accounts.team_service import owned
from app.audit.drafts import note
from app.auth import invitations, members, standing, users
from app.auth.key_records import lock_user
from app.auth.members import MemberRecord
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.teams import get_team
from app.core.errors import (
    AlreadyAMember,
    InsufficientRole,
    InvalidField,
    LastOwner,
    NotAMember,
    NotFound,
    TeamLimitReached,
    TeamsLimitReached,
    require_found,
)

WHAT = "member"
NO_LIMIT = 2**31


async def list_page(
    principal: Principal, team_id: int, *, starting_after: int | None, limit: int
) -> tuple[list[MemberRecord], bool]:
    """A page, those who joined last first, and whether more follows. Raises `NotFound`, and `InvalidField` for a cursor
    that is no member's."""
    owned(principal, team_id)
    if starting_after is not None and await members.find_member(team_id, starting_after) is None:
        raise InvalidField("starting_after", "This is not the user_id of a member of this team.")
    page = await members.list_members(team_id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def get(principal: Principal, team_id: int, user_id: int) -> MemberRecord:
    """Raises `NotFound`."""
    owned(principal, team_id)
    return require_found(await members.find_member(team_id, user_id), WHAT)


async def add(
    principal: Principal | None,
    team_id: int,
    *,
    user_id: int | None,
    email: str | None,
    role: Role,
    limits: tuple[int, int],
) -> MemberRecord:
    """Adds somebody who is in another team with the caller, or for the operator (None) anybody; others have to be
    invited. `limits` are the most members of a team, and the most teams of a person. Raises `NotFound`, `InvalidField`,
    `InsufficientRole`, `AlreadyAMember`, `TeamLimitReached` or `TeamsLimitReached`."""
    await lock(principal, team_id, role)
    person = user_id if user_id is not None else await users.find_user(email or "")
    known = person is not None and (principal is None or await members.share_a_team(principal.user_id, person))
    if person is None or not known:
        raise InvalidField(
            "email" if user_id is None else "user_id",
            "Nobody in any of your teams is this. Invite them: POST /api/v1/teams/{id}/invitations.",
        )
    await join(principal, team_id, person, role, limits)
    return require_found(await members.find_member(team_id, person), WHAT)


async def join(caller: Principal | None, team_id: int, user_id: int, role: Role, limits: tuple[int, int]) -> None:
    """Adds the person to the team, which is locked. Raises `AlreadyAMember`, `TeamLimitReached` or `TeamsLimitReached`,
    and what `standing.expect` does."""
    await _lock_person(caller, user_id)
    if await members.role_of(team_id, user_id) is not None:
        raise AlreadyAMember
    most_members, most_teams = limits
    if await members.count_members(team_id) >= most_members:
        raise TeamLimitReached("members", most_members)
    if await members.count_teams(user_id) >= most_teams:
        raise TeamsLimitReached(most_teams)
    await members.insert_member(team_id, user_id, role)
    _note(team_id, user_id, None, role)


async def change(principal: Principal | None, team_id: int, user_id: int, role: Role) -> MemberRecord:
    """Gives a member another role. Raises `NotFound`, `InsufficientRole` or `LastOwner`."""
    await lock(principal, team_id, role)
    record = await _lock_member(principal, team_id, user_id)
    await _check(principal, team_id, record.role)
    await _keep_an_owner(record, role)
    await members.set_role(team_id, user_id, role)
    _note(team_id, user_id, record.role, role)
    await invitations.withdraw_beyond(team_id, user_id, [one for one in Role if role.manages(one)])
    return require_found(await members.find_member(team_id, user_id), WHAT)


async def remove(principal: Principal | None, team_id: int, user_id: int) -> MemberRecord:
    """Removes a member; anybody may leave. What their keys could do in the team has ended for good. Raises `NotFound`,
    `InsufficientRole`, `LastOwner`, and what `standing.expect` does."""
    leaving = principal is not None and principal.user_id == user_id
    await lock(None if leaving else principal, team_id)
    if principal is not None:
        owned(principal, team_id)
    record = await _lock_member(principal, team_id, user_id)
    await _check(None if leaving else principal, team_id, record.role)
    await _keep_an_owner(record, None)
    await members.delete_member(team_id, user_id)
    _note(team_id, user_id, record.role, None)
    await invitations.withdraw_beyond(team_id, user_id, [])
    return record


async def lock(principal: Principal | None, team_id: int, giving: Role | None = None) -> None:
    """Locks the team: nobody else changes its members until the end of the transaction. Checks that the caller would
    still be let in, and may give that role, as roles are now. Raises `NotFound`, `InsufficientRole`, and what
    `standing.expect` does."""
    if principal is not None:
        owned(principal, team_id)
    try:
        await get_team(team_id, lock=True, live=True)
    except NotAMember:
        raise NotFound(TEAM) from None
    if principal is not None:
        await standing.expect(principal, team_id)
    await _check(principal, team_id, giving or Role.VIEWER)


async def _check(principal: Principal | None, team_id: int, other: Role) -> None:
    """Checks that the caller may give this role, and take it, as an operator (None) may any."""
    if principal is None:
        return
    own = await members.role_of(team_id, principal.user_id)
    if own is None or not own.manages(other):
        raise InsufficientRole(own or "", [role for role in Role if role.manages(other)], team_id)


async def _lock_member(caller: Principal | None, team_id: int, user_id: int) -> MemberRecord:
    await _lock_person(caller, user_id)
    return require_found(await members.find_member(team_id, user_id), WHAT)


async def _lock_person(caller: Principal | None, user_id: int) -> None:
    await lock_user(user_id)
    if caller is not None:
        await standing.expect(caller, None)


def _note(team_id: int, user_id: int, before: Role | None, after: Role | None) -> None:
    note(team_id=team_id, subject=("team_member", f"{team_id}/{user_id}"), changes={"role": (before, after)})


async def _keep_an_owner(record: MemberRecord, role: Role | None) -> None:
    losing = record.role is Role.OWNER and role is not Role.OWNER
    if losing and not await members.has_other_owner(record.team_id, record.user_id):
        raise LastOwner
