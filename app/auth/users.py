"""Users, teams and who is in which."""

from datetime import datetime
from string import ascii_lowercase, ascii_uppercase

import msgspec

from app.auth.roles import Role, known_role
from app.auth.teams import TeamRecord, insert_team
from app.core.errors import InvalidField, NotFound
from app.store.session import execute, fetch_all, fetch_one, fetch_value, transaction

TIERS = ("free", "pro", "enterprise")
QUERY_CLASSES = ("read", "write", "ddl")
"""How far a team's questions in natural language may go; each includes those before it."""

_LOWERING = str.maketrans(ascii_uppercase, ascii_lowercase)


class NewUser(msgspec.Struct, frozen=True, kw_only=True):
    user_id: int
    team_id: int


class UserLine(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    email: str
    name: str
    team_ids: list[int]
    """The primary one first."""
    operator: bool
    created_at: datetime


class TeamLine(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    tier: str
    queries: str
    users: int
    databases: int
    """Databases that are not deleted."""


async def create_user(
    *, email: str, name: str, team: str | None = None, tier: str | None = None, role: str | None = None
) -> NewUser:
    """Makes a user in a team of their own, or in the team named `team`, which is made when there is none.

    `role` is the user's there: `member` unless given, but `owner` of a team that has none. `tier` is
    the tier of a team that is made (`free` unless given); for one that exists it must be its own. Raises `InvalidField`
    for a blank name, an email that is taken, an unknown tier or role, or a team name that several teams bear.
    """
    _check_email(email)
    check_name(name)
    check_tier(tier or "free")
    known_role(role or Role.MEMBER)
    async with transaction():
        user_id = await _insert_user(email, name)
        if user_id is None:
            raise InvalidField("email", f"A user with the email {email} exists already.")
        team_id = await _team(team, tier) if team else await insert_team(name, tier or "free")
        await execute(
            """
            INSERT INTO memberships (user_id, team_id, role) SELECT $1, $2, CASE
                WHEN EXISTS (SELECT FROM memberships WHERE team_id = $2 AND role = 'owner') THEN coalesce($3, 'member')
                ELSE 'owner' END
            """,
            user_id,
            team_id,
            role,
        )
    return NewUser(user_id=user_id, team_id=team_id)


class TeamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator sets of a team."""

    team_id: int
    tier: str
    queries: str


def comparable(email: str) -> str:
    """What equal addresses have in common: those that differ only in the case of ASCII letters are one person's.
    Nothing else is taken for something similar: `straße.example` and `strasse.example` are two domains."""
    return email.translate(_LOWERING)


async def find_user(email: str) -> int | None:
    """The id of the user with this email. Of several, from before equal ones were refused, the one who has it just as
    it is written, or else the first."""
    # As `comparable` does it: with this collation only ASCII letters have a case.
    sql = 'SELECT id FROM users WHERE lower(email COLLATE "C") = $1 ORDER BY email = $2 DESC, id LIMIT 1'
    return await fetch_value(int, sql, comparable(email), email)


async def email_of(user_id: int) -> str:
    """The email of a user who exists."""
    email = await fetch_value(str, "SELECT email FROM users WHERE id = $1", user_id)
    assert email is not None, "users are not deleted"
    return email


async def insert_invited(email: str, name: str) -> int | None:
    """Makes a user who is in no team yet, for somebody whose address is verified. Returns the id; None where the user
    exists already. Call it in a transaction."""
    return await _insert_user(email, name)


async def _insert_user(email: str, name: str) -> int | None:
    # The lock prevents two at once from making the user twice, with the address written differently.
    await execute("SELECT pg_advisory_xact_lock(hashtextextended('headwater user ' || $1, 0))", comparable(email))
    if await find_user(email) is not None:
        return None
    return await fetch_value(
        int,
        "INSERT INTO users (email, name) VALUES ($1, $2) ON CONFLICT (email) DO NOTHING RETURNING id",
        email,
        name,
    )


async def lock_person(user_id: int) -> None:
    """Locks the user: nobody else changes what is theirs until the end of the transaction. Raises `NotFound`."""
    if await fetch_value(int, "SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE", user_id) is None:
        raise NotFound("user")


async def list_users() -> list[UserLine]:
    return await fetch_all(
        UserLine,
        """
        SELECT u.id, u.email, u.name, u.operator, u.created_at,
               array(SELECT m.team_id FROM memberships m WHERE m.user_id = u.id ORDER BY m.id) AS team_ids
        FROM users u ORDER BY u.id
        """,
    )


class UserSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator sets of a user. `before` is what held before."""

    user_id: int
    operator: bool
    before: bool


async def set_operator(user_id: int, operator: bool) -> UserSettings:
    """Raises `NotFound` for an unknown user."""
    changed = await fetch_one(
        UserSettings,
        """
        UPDATE users u SET operator = $2 FROM (SELECT id, operator FROM users WHERE id = $1 FOR NO KEY UPDATE) old
        WHERE u.id = old.id RETURNING u.id AS user_id, u.operator, old.operator AS before
        """,
        user_id,
        operator,
    )
    if changed is None:
        raise NotFound("user")
    return changed


async def list_teams() -> list[TeamLine]:
    return await fetch_all(
        TeamLine,
        """
        SELECT t.id, t.name, t.tier, t.queries,
               (SELECT count(*) FROM memberships m WHERE m.team_id = t.id) AS users,
               (SELECT count(*) FROM databases d WHERE d.team_id = t.id AND d.status <> 'deleted') AS databases
        FROM teams t WHERE t.deleted_at IS NULL ORDER BY t.id
        """,
    )


async def set_team(team_id: int, *, tier: str | None = None, queries: str | None = None) -> TeamSettings:
    """Changes what is given and returns what holds then. Raises `NotFound` for an unknown team, `InvalidField` for
    an unknown tier or class of queries."""
    if tier is not None:
        check_tier(tier)
    if queries is not None and queries not in QUERY_CLASSES:
        raise InvalidField("queries", f"Expected one of {', '.join(QUERY_CLASSES)}.")
    changed = await fetch_one(
        TeamSettings,
        "UPDATE teams SET tier = coalesce($2, tier), queries = coalesce($3, queries)"
        " WHERE id = $1 AND deleted_at IS NULL RETURNING id AS team_id, tier, queries",
        team_id,
        tier,
        queries,
    )
    if changed is None:
        raise NotFound("team")
    return changed


def check_tier(tier: str) -> None:
    if tier not in TIERS:
        raise InvalidField("tier", f"Expected one of {', '.join(TIERS)}.")


def check_name(name: str) -> None:
    if not name.strip():
        raise InvalidField("name", "A name must not be blank.")


def _check_email(email: str) -> None:
    local, at, domain = email.partition("@")
    if not (local and at and domain) or any(character.isspace() for character in email):
        raise InvalidField("email", f"{email!r} is not an email address.")


async def _team(name: str, tier: str | None) -> int:
    # The lock prevents two concurrent commands from making the team twice.
    await execute("SELECT pg_advisory_xact_lock(hashtextextended('headwater team ' || $1, 0))", name)
    named = await fetch_all(TeamRecord, "SELECT id, tier, name FROM teams WHERE name = $1 AND deleted_at IS NULL", name)
    if len(named) > 1:
        raise InvalidField("team", f"Several teams are named {name}.")
    if not named:
        return await insert_team(name, tier or "free")
    if tier is not None and named[0].tier != tier:
        raise InvalidField("tier", f"The team {name} has the tier {named[0].tier}.")
    return named[0].id
