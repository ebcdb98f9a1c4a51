"""A team as the owner of databases."""

import msgspec

from app.auth.principal import Principal
from app.core.errors import InvalidField
from app.databases.schemas import CreateDatabase
from app.quotas.plans import check_plan
from app.store.session import fetch, fetch_one


class Team(msgspec.Struct, frozen=True):
    id: int
    tier: str
    name: str


async def get_team(team_id: int, *, lock: bool = False) -> Team:
    """One that a membership or a database names, so it exists."""
    query = "SELECT id, tier, name FROM teams WHERE id = $1"
    team = await fetch_one(Team, f"{query} FOR NO KEY UPDATE" if lock else query, team_id)
    assert team is not None, "a membership or a database names a team that exists"
    return team


async def count_owned(team_id: int) -> int:
    """How many databases it has; deleted ones are not its own any more. Exact while the team is locked."""
    rows = await fetch("SELECT count(*) FROM databases WHERE team_id = $1 AND status <> 'deleted'", team_id)
    count: int = rows[0]["count"]
    return count


def asked_team(principal: Principal, request: CreateDatabase) -> Team:
    """The team that is to own the database. Raises `InvalidField`."""
    asked = request.team_id
    if isinstance(asked, int) and asked not in principal.team_ids:
        raise InvalidField("team_id", "This is not a team of yours.")
    if not principal.team_ids:
        raise InvalidField("team_id", "You are in no team that could own the database.")
    place = principal.team_ids.index(asked) if isinstance(asked, int) else 0
    return Team(principal.team_ids[place], principal.team_tiers[place], principal.team_names[place])


async def team_for_create(principal: Principal, request: CreateDatabase) -> Team:
    """The same, if it may have the database. Raises `InvalidField` or `PlanLimitExceeded`."""
    team, owned = asked_team(principal, request), 0
    if team.tier == "free":
        # Locked, so that two creates at once don't both find room for the one database.
        team = await get_team(team.id, lock=True)
        owned = await count_owned(team.id)
    check_plan(team.tier, request.plan, owned)
    return team
