"""What people do with teams. Every change belongs in the request's transaction."""

from app.audit.drafts import note, note_difference
from app.auth import members, standing, teams
from app.auth.key_records import lock_user
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.teams import TeamDetails
from app.auth.users import check_name
from app.core.errors import (
    ExceedsOwnKey,
    InsufficientRole,
    InvalidField,
    NotFound,
    TeamHasDatabases,
    TeamsLimitReached,
    require_found,
)

WHAT = "team"
TIER = "free"
"""The tier of a team that a person makes: the operator gives others."""


def owned(principal: Principal, team_id: int) -> Role:
    """The caller's role in the team that the path names. Raises `NotFound`."""
    role = principal.role_in(team_id)
    if role is None:
        raise NotFound(WHAT)
    note(team_id=team_id)
    return role


async def list_page(principal: Principal, *, starting_after: int | None, limit: int) -> tuple[list[TeamDetails], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is none of the teams'."""
    if starting_after is not None and starting_after not in principal.team_ids:
        raise InvalidField("starting_after", "This is not the id of a team of yours.")
    page = await teams.list_details(principal.team_ids, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def get(principal: Principal, team_id: int) -> TeamDetails:
    """Raises `NotFound`."""
    owned(principal, team_id)
    return require_found(await teams.find_details(team_id), WHAT)


async def create(principal: Principal, name: str, *, most: int) -> TeamDetails:
    """Makes a team that the caller owns. `most` is how many a person may be in. Raises `InvalidField`,
    `TeamsLimitReached`, `ExceedsOwnKey` for a key that is for one team only, and what `standing.expect` does."""
    check_joining(principal)
    check_name(name)
    await lock_user(principal.user_id)
    await standing.expect(principal, None)
    if await members.count_teams(principal.user_id) >= most:
        raise TeamsLimitReached(most)
    team_id = await teams.insert_team(name, TIER)
    await members.insert_member(team_id, principal.user_id, Role.OWNER)
    note(subject=("team", team_id), team_id=team_id)
    return require_found(await teams.find_details(team_id), WHAT)


async def rename(principal: Principal, team_id: int, name: str) -> TeamDetails:
    """Raises `NotFound`, `InvalidField` or `InsufficientRole`."""
    owned(principal, team_id)
    check_name(name)
    await _lock_as_owner(principal, team_id)
    before = require_found(await teams.find_details(team_id), WHAT)
    await teams.rename_team(team_id, name)
    note_difference({"name": before.name}, {"name": name})
    return require_found(await teams.find_details(team_id), WHAT)


async def delete(principal: Principal, team_id: int) -> None:
    """Deletes the team. Its deleted databases are destroyed when they are due, and its backups stay for as long as they
    would have. Raises `NotFound`, `TeamHasDatabases` or `InsufficientRole`."""
    owned(principal, team_id)
    await _lock_as_owner(principal, team_id)
    databases = await teams.count_databases(team_id)
    if databases:
        raise TeamHasDatabases(databases)
    await teams.end_team(team_id)


def check_joining(principal: Principal) -> None:
    """A key for one team has no part in others, and neither makes nor joins any. Raises `ExceedsOwnKey`."""
    if principal.narrowed:
        raise ExceedsOwnKey("databases" if principal.key_team_id is None else "team_id")


async def _lock_as_owner(principal: Principal, team_id: int) -> None:
    """Locks the team: until the end of the transaction nothing becomes the team's, and nobody joins or leaves. Checks
    that the caller would still be let in, and owns the team."""
    if not await teams.lock_to_end(team_id):
        raise NotFound(WHAT)
    await standing.expect(principal, team_id)
    role = await members.role_of(team_id, principal.user_id)
    if role is not Role.OWNER:
        raise InsufficientRole(role or "", [Role.OWNER], team_id)
