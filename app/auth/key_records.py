"""Rows of API keys, for the keys that manage others of the same user, and for people who manage theirs.

A key manages those keys of its user that are for no more than the team and the databases that it is for itself. Admins
of a team see all keys that are for it. Whoever changes a user's keys locks the user first, so that no key makes another
while it is being revoked.
"""

import secrets
from datetime import datetime

from app.auth.authority import Authority
from app.auth.keys import PREFIX, hash_key, preview_of
from app.store.session import execute, fetch_all, fetch_one, fetch_scalar, fetch_values


class KeyRecord(Authority, frozen=True, kw_only=True):
    """A key with its limits."""

    id: int
    user_id: int
    name: str
    preview: str
    minted_by: int | None
    previous_until: datetime | None
    """Until when the secret that was replaced works too."""
    expired: bool
    last_used_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


_COLUMNS = """
k.id, k.user_id, k.name, k.preview, k.scopes, k.requests_per_minute, k.monthly_quota, k.allowed_ips,
k.inactive_ttl_days, k.team_id, k.databases, k.ended_teams, k.minted_by, k.expires_at, k.revoked_at, k.created_at,
CASE WHEN k.previous_until > now() THEN k.previous_until END AS previous_until, c.last_used_at,
coalesce(k.expires_at <= now(), false) OR coalesce(
    coalesce(c.last_used_at, k.created_at) + make_interval(days => k.inactive_ttl_days) <= now(), false
) AS expired
"""
_MANAGED = f"""
SELECT {_COLUMNS} FROM api_keys mine JOIN api_keys k ON k.user_id = mine.user_id AND (
    k.id = mine.id OR ((mine.team_id IS NULL OR coalesce(k.team_id = mine.team_id, false))
                       AND (mine.databases IS NULL OR coalesce(k.databases <@ mine.databases, false))
                       AND NOT EXISTS (SELECT FROM unnest(mine.ended_teams) AS ended (team_id)
                                       WHERE coalesce(k.team_id = ended.team_id, true)
                                         AND ended.team_id <> ALL (k.ended_teams)))
)
JOIN api_key_usage c ON c.key_id = k.id
WHERE mine.id = $1
"""  # noqa: S608 - our own words


_ANY = f"""
SELECT {_COLUMNS} FROM api_keys k JOIN api_key_usage c ON c.key_id = k.id WHERE k.id = $1
"""  # noqa: S608 - our own words

_OF_USER = f"""
SELECT {_COLUMNS} FROM api_keys k JOIN api_key_usage c ON c.key_id = k.id WHERE k.user_id = $1
"""  # noqa: S608 - our own words


async def lock_user(user_id: int) -> None:
    """Locks the user: until the end of the transaction nobody else changes this user's keys."""
    await execute("SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE", user_id)


async def find_managed(by: int, key_id: int) -> KeyRecord | None:
    """The key, if the key `by` manages it."""
    return await fetch_one(KeyRecord, f"{_MANAGED} AND k.id = $2", by, key_id)


async def find_of_user(user_id: int, key_id: int) -> KeyRecord | None:
    """The key, if it is this person's."""
    return await fetch_one(KeyRecord, f"{_ANY} AND k.user_id = $2", key_id, user_id)


async def find(key_id: int) -> KeyRecord | None:
    """The key, of any user."""
    return await fetch_one(KeyRecord, _ANY, key_id)


async def find_with_text(key_id: int, key_hash: bytes) -> KeyRecord | None:
    """The key, if this is the hash of its text, or of the one before, which still works."""
    sql = f"{_ANY} AND (k.hash = $2 OR k.previous_hash = $2 AND k.previous_until > clock_timestamp())"
    return await fetch_one(KeyRecord, sql, key_id, key_hash)


async def list_managed(by: int, *, after: int | None, limit: int) -> list[KeyRecord]:
    """The keys that `by` manages, newest first, revoked ones too."""
    sql = f"{_MANAGED} AND ($2::bigint IS NULL OR k.id < $2) ORDER BY k.id DESC LIMIT $3"
    return await fetch_all(KeyRecord, sql, by, after, limit)


async def list_of_user(user_id: int, *, after: int | None, limit: int) -> list[KeyRecord]:
    """The person's keys, newest first, revoked ones too."""
    sql = f"{_OF_USER} AND ($2::bigint IS NULL OR k.id < $2) ORDER BY k.id DESC LIMIT $3"
    return await fetch_all(KeyRecord, sql, user_id, after, limit)


_OF_TEAM = f"""
SELECT {_COLUMNS} FROM api_keys k JOIN api_key_usage c ON c.key_id = k.id
JOIN memberships m ON m.user_id = k.user_id AND m.team_id = any($1::bigint[])
WHERE coalesce(k.team_id = m.team_id, true) AND m.team_id <> ALL (k.ended_teams)
"""  # noqa: S608 - our own words


async def find_of_teams(team_ids: list[int], key_id: int) -> KeyRecord | None:
    """The key, if it is for one of these teams and its user is in that one."""
    return await fetch_one(KeyRecord, f"{_OF_TEAM} AND k.id = $2 LIMIT 1", team_ids, key_id)


async def list_of_team(team_id: int, *, after: int | None, limit: int) -> list[KeyRecord]:
    """The keys of all members that are for this team, newest first, revoked ones too."""
    sql = f"{_OF_TEAM} AND ($2::bigint IS NULL OR k.id < $2) ORDER BY k.id DESC LIMIT $3"
    return await fetch_all(KeyRecord, sql, [team_id], after, limit)


async def minted_by(key_id: int) -> list[int]:
    """The keys that this key has minted, those that they have minted, and so on."""
    return await fetch_values(
        int,
        """
        WITH RECURSIVE minted AS (
            SELECT id FROM api_keys WHERE minted_by = $1
            UNION SELECT k.id FROM minted JOIN api_keys k ON k.minted_by = minted.id
        )
        SELECT id FROM minted ORDER BY id
        """,
        key_id,
    )


async def count_unrevoked(user_id: int) -> int:
    return await fetch_scalar(int, "SELECT count(*) FROM api_keys WHERE user_id = $1 AND revoked_at IS NULL", user_id)


async def set_limits(key_id: int, name: str, limits: Authority) -> None:
    await execute(
        """
        UPDATE api_keys SET name = $2, scopes = $3, requests_per_minute = $4, monthly_quota = $5, allowed_ips = $6,
               inactive_ttl_days = $7, expires_at = $8, team_id = $9, databases = $10
        WHERE id = $1
        """,
        key_id,
        name,
        limits.scopes,
        limits.requests_per_minute,
        limits.monthly_quota,
        limits.allowed_ips,
        limits.inactive_ttl_days,
        limits.expires_at,
        limits.team_id,
        limits.databases,
    )


async def replace_secret(key_id: int, overlap_seconds: float) -> str:
    """Gives the key a new secret, and returns the key in full. The present secret works for `overlap_seconds` beside
    it; one that was replaced before ends now."""
    api_key = PREFIX + secrets.token_urlsafe(24)
    await execute(
        """
        UPDATE api_keys SET hash = $2, preview = $3,
               previous_hash = CASE WHEN $4::float8 > 0 THEN hash END,
               previous_until = CASE WHEN $4::float8 > 0 THEN now() + make_interval(secs => $4) END
        WHERE id = $1
        """,
        key_id,
        hash_key(api_key),
        preview_of(api_key),
        overlap_seconds,
    )
    return api_key


async def revoke_minted(key_id: int) -> list[int]:
    """Revokes the keys that this key has minted, those that they have minted, and so on; returns the ones that were not
    revoked before."""
    return await fetch_values(
        int,
        """
        WITH RECURSIVE minted AS (
            SELECT id FROM api_keys WHERE minted_by = $1
            UNION SELECT k.id FROM minted JOIN api_keys k ON k.minted_by = minted.id
        )
        UPDATE api_keys SET revoked_at = now() WHERE id IN (SELECT id FROM minted) AND revoked_at IS NULL RETURNING id
        """,
        key_id,
    )
