"""Sessions: people who are signed in with a browser. Only the SHA-256 of a session's token is stored."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from app.auth.keys import hash_key
from app.auth.users import lock_person
from app.core.ids import new_uuid
from app.store.session import execute, fetch_all, fetch_one, fetch_values

_MOST_OF_A_PERSON = 50
_MOST_AGENT = 200
"""Characters of what a browser calls itself."""


class SignInMethod(StrEnum):
    """How somebody signed in."""

    LINK = "link"
    PASSKEY = "passkey"
    OIDC = "oidc"


class SessionSpans(msgspec.Struct, frozen=True, kw_only=True):
    """How long a session lasts without use, and as a whole, in seconds."""

    idle: int
    whole: int


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    uuid: UUID
    method: SignInMethod
    address: str
    user_agent: str
    last_used_at: datetime
    """To about a minute."""
    expires_at: datetime
    """When it ends at the latest."""
    idle_expires_at: datetime
    """When it ends if it isn't used before."""
    created_at: datetime


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    uuid: UUID
    token: str
    """For the cookie: it is nowhere else."""


_LIVE = "s.expires_at > now() AND s.last_used_at + make_interval(secs => s.idle_seconds) > now()"
_SELECT = f"""
SELECT s.id, s.uuid, s.method, s.address, s.user_agent, s.last_used_at, s.expires_at, s.created_at,
       least(s.expires_at, s.last_used_at + make_interval(secs => s.idle_seconds)) AS idle_expires_at
FROM sessions s WHERE {_LIVE}
"""  # noqa: S608 - our own words


async def open_session(
    user_id: int, method: SignInMethod, *, address: str, user_agent: str, limits: SessionSpans
) -> NewSession:
    """Opens a session with a new token, whatever the browser had before. Of a person's sessions the most recent are
    kept."""
    token = secrets.token_urlsafe(32)
    made = NewSession(uuid=new_uuid(), token=token)
    # Sign-ins of one person take turns, or their number would not hold.
    await lock_person(user_id)
    await execute(
        "INSERT INTO session_usage (user_id, window_start) VALUES ($1, 'epoch') ON CONFLICT (user_id) DO NOTHING",
        user_id,
    )
    await execute(
        """
        DELETE FROM sessions s WHERE s.user_id = $1 AND s.id NOT IN (
            SELECT id FROM sessions WHERE user_id = $1 ORDER BY last_used_at DESC, id DESC LIMIT $2
        )
        """,
        user_id,
        _MOST_OF_A_PERSON - 1,
    )
    await execute(
        """
        INSERT INTO sessions (uuid, user_id, hash, method, address, user_agent, idle_seconds, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8))
        """,
        made.uuid,
        user_id,
        hash_key(token),
        method,
        address,
        user_agent.replace("\x00", "")[:_MOST_AGENT],
        limits.idle,
        float(limits.whole),
    )
    return made


async def find_session(session_id: int) -> SessionRecord | None:
    """None for one that has ended."""
    return await fetch_one(SessionRecord, f"{_SELECT} AND s.id = $1", session_id)


async def is_live(session_id: int) -> bool:
    """Whether the session has not ended."""
    return await find_session(session_id) is not None


class _SessionPlace(msgspec.Struct, frozen=True):
    session_id: int
    team_id: int


async def which_stand(places: Sequence[tuple[int, int]], roles: Sequence[str]) -> set[tuple[int, int]]:
    """Those of these sessions, each with a team, that have not ended, and whose person has one of the roles there."""
    found = await fetch_all(
        _SessionPlace,
        f"""
        SELECT asked.session_id, asked.team_id
        FROM unnest($1::bigint[], $2::bigint[]) AS asked (session_id, team_id)
        JOIN sessions s ON s.id = asked.session_id
        JOIN memberships m ON m.user_id = s.user_id AND m.team_id = asked.team_id
        WHERE {_LIVE} AND m.role = any($3::text[])
        """,  # noqa: S608 - our own words
        [session for session, _ in places],
        [team for _, team in places],
        list(roles),
    )
    return {(place.session_id, place.team_id) for place in found}


async def find_of_user(user_id: int, uuid: UUID) -> SessionRecord | None:
    """The person's session, unless it has ended."""
    return await fetch_one(SessionRecord, f"{_SELECT} AND s.user_id = $1 AND s.uuid = $2", user_id, uuid)


async def list_of_user(user_id: int, *, after: int | None, limit: int) -> list[SessionRecord]:
    """The person's sessions that have not ended, the one that was opened last first."""
    sql = f"{_SELECT} AND s.user_id = $1 AND ($2::bigint IS NULL OR s.id < $2) ORDER BY s.id DESC LIMIT $3"
    return await fetch_all(SessionRecord, sql, user_id, after, limit)


async def end_session(user_id: int, session_id: int) -> None:
    """Ends the person's session: the next request with it is refused, and so is one that is under way with it and locks
    the person after this."""
    await lock_person(user_id)
    await execute("DELETE FROM sessions WHERE id = $1", session_id)


async def end_all_of(user_id: int) -> list[UUID]:
    """The same for all sessions of a person; returns which these were."""
    await lock_person(user_id)
    return await fetch_values(UUID, "DELETE FROM sessions WHERE user_id = $1 RETURNING uuid", user_id)


async def end_of_token(token: str) -> None:
    """Ends the session that has this token, if any."""
    await execute("DELETE FROM sessions WHERE hash = $1", hash_key(token))


async def delete_ended(batch: int, _: timedelta) -> int:
    """Deletes rows of sessions whose time has passed; returns how many."""
    gone = await fetch_values(
        int,
        f"""
        DELETE FROM sessions WHERE id IN (
            SELECT s.id FROM sessions s WHERE NOT ({_LIVE}) ORDER BY s.id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING id
        """,  # noqa: S608 - our own words
        batch,
    )
    return len(gone)
