"""Teams, as the owners of what is counted and limited."""

from collections.abc import Sequence

import msgspec

from app.store.session import fetch_all, fetch_one


class TeamRecord(msgspec.Struct, frozen=True):
    id: int
    tier: str
    name: str


async def get_team(team_id: int, *, lock: bool = False) -> TeamRecord:
    """A team that a membership or a database names, so it exists. With `lock` it stays locked until the transaction's
    end: lock it before anything that it owns."""
    query = "SELECT id, tier, name FROM teams WHERE id = $1"
    team = await fetch_one(TeamRecord, f"{query} FOR NO KEY UPDATE" if lock else query, team_id)
    assert team is not None, "a membership or a database names a team that exists"
    return team


class _TeamName(msgspec.Struct, frozen=True):
    id: int
    name: str


async def names_of_teams(team_ids: Sequence[int]) -> dict[int, str]:
    """By their ids; a team that is gone is left out."""
    sql = "SELECT id, name FROM teams WHERE id = any($1::bigint[])"
    return {team.id: team.name for team in await fetch_all(_TeamName, sql, list(team_ids))}
