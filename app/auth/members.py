"""Who is in which team, with which role.

Whoever changes a team's members locks the team first, and then the person: so the last owner stays, whatever comes at
the same moment, and none of the person's keys is being made while they leave.
"""

from datetime import datetime

import msgspec

from app.auth.roles import Role
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar, fetch_value


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    team_id: int
    user_id: int
    name: str
    email: str
    role: Role
    joined_at: datetime


class _Place(msgspec.Struct, frozen=True):
    team_id: int
    role: Role


_MEMBERS = """
SELECT m.team_id, m.user_id, u.name, u.email, m.role, m.created_at AS joined_at
FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.team_id = $1
"""


async def find_member(team_id: int, user_id: int) -> MemberRecord | None:
    return await fetch_one(MemberRecord, f"{_MEMBERS} AND m.user_id = $2", team_id, user_id)


async def list_members(team_id: int, *, after: int | None, limit: int) -> list[MemberRecord]:
    """The team's members, those who joined last first, from the one that follows the user `after` on."""
    sql = f"""
    {_MEMBERS} AND ($2::bigint IS NULL
                    OR m.id < (SELECT id FROM memberships WHERE team_id = $1 AND user_id = $2))
    ORDER BY m.id DESC LIMIT $3
    """  # noqa: S608 - our own words
    return await fetch_all(MemberRecord, sql, team_id, after, limit)


async def role_of(team_id: int, user_id: int) -> Role | None:
    """None for somebody who is not in the team."""
    role = await fetch_value(str, "SELECT role FROM memberships WHERE team_id = $1 AND user_id = $2", team_id, user_id)
    return None if role is None else Role(role)


async def roles_of(user_id: int) -> dict[int, Role]:
    """The person's roles, by the teams that they are in, the primary one first."""
    rows = await fetch_all(_Place, "SELECT team_id, role FROM memberships WHERE user_id = $1 ORDER BY id", user_id)
    return {row.team_id: row.role for row in rows}


async def share_a_team(one: int, other: int) -> bool:
    """Whether these two people are in a team together."""
    return await fetch_exists(
        """
        SELECT 1 FROM memberships a JOIN memberships b ON b.team_id = a.team_id
        WHERE a.user_id = $1 AND b.user_id = $2
        """,
        one,
        other,
    )


async def count_members(team_id: int) -> int:
    return await fetch_scalar(int, "SELECT count(*) FROM memberships WHERE team_id = $1", team_id)


# A person who makes and deletes teams in a loop would else fill hosts and the store with what each team leaves.
_TEAMS = """
SELECT (SELECT count(*) FROM memberships WHERE user_id = $1) + (
    SELECT count(*) FROM teams t WHERE t.deleted_at IS NOT NULL AND EXISTS (
        SELECT FROM databases d WHERE d.team_id = t.id AND d.created_by_id = $1 AND (
            d.destroyed_at IS NULL
            OR EXISTS (SELECT FROM backups b WHERE b.database_id = d.id AND b.status = 'completed'))))
"""


async def count_teams(user_id: int) -> int:
    """The number of teams that the person is in, and of deleted teams of which databases that the person made, or
    backups of them, are still kept."""
    return await fetch_scalar(int, _TEAMS, user_id)


async def has_other_owner(team_id: int, user_id: int) -> bool:
    """Whether somebody else owns the team too."""
    return await fetch_exists(
        "SELECT 1 FROM memberships WHERE team_id = $1 AND user_id <> $2 AND role = 'owner'", team_id, user_id
    )


async def insert_member(team_id: int, user_id: int, role: Role) -> None:
    await execute("INSERT INTO memberships (team_id, user_id, role) VALUES ($1, $2, $3)", team_id, user_id, role)


async def set_role(team_id: int, user_id: int, role: Role) -> None:
    await execute("UPDATE memberships SET role = $3 WHERE team_id = $1 AND user_id = $2", team_id, user_id, role)


async def delete_member(team_id: int, user_id: int) -> None:
    """Removes the person from the team. Their keys go on without it, for good."""
    await execute("DELETE FROM memberships WHERE team_id = $1 AND user_id = $2", team_id, user_id)
    await end_keys(team_id, user_id)


async def end_keys(team_id: int, user_id: int, key_id: int | None = None) -> None:
    """Shuts all keys of this person, or one of them, out of the team from now on. Teams that were deleted since are
    taken off a key's list of ended teams, so that it doesn't grow."""
    await execute(
        """
        UPDATE api_keys k SET ended_teams = array(
            SELECT t.id FROM teams t
            WHERE t.id = any(k.ended_teams || $1::bigint) AND t.deleted_at IS NULL ORDER BY t.id
        )
        WHERE k.user_id = $2 AND ($3::bigint IS NULL OR k.id = $3) AND (k.team_id IS NULL OR k.team_id = $1)
        """,
        team_id,
        user_id,
        key_id,
    )
