"""Teams, as the owners of what is counted and limited. The row of a deleted one stays, for what outlives it."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.core.errors import InvalidField, NotAMember
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar


class TeamRecord(msgspec.Struct, frozen=True):
    id: int
    tier: str
    name: str


class TeamDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A team as its members see it."""

    id: int
    name: str
    tier: str
    queries: str
    created_at: datetime


_DETAILS = "SELECT id, name, tier, queries, created_at FROM teams"


async def get_team(team_id: int, *, lock: bool = False, live: bool = False) -> TeamRecord:
    """A team that a membership or a database names, so it exists. With `lock` it stays locked until the transaction's
    end: lock it before anything that it owns. With `live`, raises `NotAMember` for one that was deleted."""
    query = "SELECT id, tier, name FROM teams WHERE id = $1 AND (deleted_at IS NULL OR NOT $2)"
    team = await fetch_one(TeamRecord, f"{query} FOR NO KEY UPDATE" if lock else query, team_id, live)
    if team is None and live:
        raise NotAMember(team_id)
    assert team is not None, "a membership or a database names a team that exists"
    return team


async def check_known(team: str) -> None:
    """Raises `InvalidField` for what is neither the id nor the full name of a team, be it deleted."""
    if not await fetch_exists("SELECT 1 FROM teams WHERE id::text = $1 OR name = $1", team):
        raise InvalidField("team", f"There is no team {team}.")


class _TeamName(msgspec.Struct, frozen=True):
    id: int
    name: str


async def names_of_teams(team_ids: Sequence[int]) -> dict[int, str]:
    """The teams' names by their ids, deleted teams' too; an id that is no team's is left out."""
    sql = "SELECT id, name FROM teams WHERE id = any($1::bigint[])"
    return {team.id: team.name for team in await fetch_all(_TeamName, sql, list(team_ids))}


async def keep_team(team_id: int) -> None:
    """Keeps the team from being deleted until the end of the transaction. Raises `NotAMember` if it was deleted
    before."""
    kept = "SELECT id, tier, name FROM teams WHERE id = $1 AND deleted_at IS NULL FOR KEY SHARE"
    if await fetch_one(TeamRecord, kept, team_id) is None:
        raise NotAMember(team_id)


async def find_details(team_id: int) -> TeamDetails | None:
    """The team's details; None if it was deleted."""
    return await fetch_one(TeamDetails, f"{_DETAILS} WHERE id = $1 AND deleted_at IS NULL", team_id)


async def list_details(team_ids: list[int], *, after: int | None, limit: int) -> list[TeamDetails]:
    """The details of these teams, newest first."""
    sql = f"""
    {_DETAILS} WHERE id = any($1::bigint[]) AND deleted_at IS NULL AND ($2::bigint IS NULL OR id < $2)
    ORDER BY id DESC LIMIT $3
    """
    return await fetch_all(TeamDetails, sql, team_ids, after, limit)


async def insert_team(name: str, tier: str) -> int:
    return await fetch_scalar(int, "INSERT INTO teams (name, tier) VALUES ($1, $2) RETURNING id", name, tier)


async def rename_team(team_id: int, name: str) -> None:
    await execute("UPDATE teams SET name = $2 WHERE id = $1", team_id, name)


async def lock_to_end(team_id: int) -> bool:
    """Locks the team: until the end of the transaction nothing becomes the team's, and nobody else changes it or its
    members. Returns False for a team that was deleted."""
    ending = "SELECT id, tier, name FROM teams WHERE id = $1 AND deleted_at IS NULL FOR UPDATE"
    return await fetch_one(TeamRecord, ending, team_id) is not None


async def count_databases(team_id: int) -> int:
    """The number of the team's databases that are not deleted."""
    return await fetch_scalar(
        int,
        "SELECT count(*) FROM teams t JOIN databases d ON d.team_id = t.id WHERE t.id = $1 AND d.status <> 'deleted'",
        team_id,
    )


async def end_team(team_id: int) -> None:
    """Deletes the team: nobody is in it from now on, and nobody can be invited."""
    await execute("UPDATE teams SET deleted_at = now() WHERE id = $1", team_id)
    await execute("DELETE FROM memberships WHERE team_id = $1", team_id)
    await execute("DELETE FROM invitations WHERE team_id = $1", team_id)
