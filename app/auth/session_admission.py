"""Letting a person's request in: their session and their rate, in one round trip, as `app.auth.admission` does it with
keys. All sessions of a person are counted together."""

import math
from datetime import datetime, timedelta
from functools import partial

import asyncpg
import msgspec
from asyncpg import Connection

from app.auth.batches import WINDOW_SECONDS, Admitted, Allowance, Asked, Batches, Waiter
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import TEAM_SCOPES, Scope
from app.core.errors import AppError, RateLimitExceeded, SessionEnded

_WINDOW = timedelta(seconds=WINDOW_SECONDS)
_USED = timedelta(seconds=60)
"""The time between two notes that a session is in use, at most."""
_TEAM_SCOPES = [scope.value for scope in TEAM_SCOPES]
_ALL_SCOPES = [scope.value for scope in Scope]
KEY_NAME = "console session"
"""What a session has in place of a key's name."""

# `locked` takes the locks in one order for all. Whoever ends sessions has not locked those rows, and takes sessions in
# an order of its own: where one is locked, it is not noted that it was used, or each could wait for the other.
_ADMIT = """
WITH live AS MATERIALIZED (
    SELECT asked.hash AS asked_hash, asked.asked, s.*, clock_timestamp() AS at,
           (sum(asked.asked) OVER (PARTITION BY s.user_id))::int AS persons,
           (sum(asked.asked) OVER (PARTITION BY s.user_id ORDER BY s.id) - asked.asked)::int AS earlier
    FROM unnest($1::bytea[], $2::int[]) AS asked (hash, asked) JOIN sessions s ON s.hash = asked.hash
    WHERE s.expires_at > now() AND s.last_used_at + make_interval(secs => s.idle_seconds) > now()
), person AS MATERIALIZED (
    SELECT DISTINCT ON (user_id) user_id, persons, at FROM live
), locked AS MATERIALIZED (
    SELECT c.user_id FROM session_usage c JOIN person p ON p.user_id = c.user_id
    ORDER BY c.user_id FOR NO KEY UPDATE OF c
), noted AS MATERIALIZED (
    SELECT s.id, a.at FROM locked JOIN live a ON a.user_id = locked.user_id JOIN sessions s ON s.id = a.id
    WHERE s.last_used_at < a.at - least($4::interval, make_interval(secs => a.idle_seconds) / 10)
    FOR NO KEY UPDATE OF s SKIP LOCKED
), used AS (
    UPDATE sessions s SET last_used_at = noted.at FROM noted WHERE s.id = noted.id
), counted AS (
    UPDATE session_usage c SET
        window_start = CASE WHEN c.window_start > p.at - $3::interval THEN c.window_start ELSE p.at END,
        window_count = CASE WHEN c.window_start > p.at - $3::interval THEN c.window_count ELSE 0 END + p.persons
    FROM locked JOIN person p ON p.user_id = locked.user_id WHERE c.user_id = locked.user_id
    RETURNING c.user_id, c.window_count - p.persons AS window_before,
              extract(epoch FROM c.window_start + $3::interval - p.at)::float8 AS window_left
)
SELECT a.asked_hash AS hash, a.id AS session_id, a.user_id, u.name AS user_name, u.email AS user_email, u.operator,
       a.last_used_at, a.at AS admitted_at, counted.window_before + a.earlier AS window_before, counted.window_left,
       coalesce(mine.ids, '{}') AS team_ids, coalesce(mine.tiers, '{}') AS team_tiers,
       coalesce(mine.names, '{}') AS team_names, coalesce(mine.roles, '{}') AS team_roles
FROM live a JOIN counted ON counted.user_id = a.user_id JOIN users u ON u.id = a.user_id CROSS JOIN LATERAL (
    SELECT array_agg(t.id ORDER BY m.id) AS ids, array_agg(t.tier ORDER BY m.id) AS tiers,
           array_agg(t.name ORDER BY m.id) AS names, array_agg(m.role ORDER BY m.id) AS roles
    FROM memberships m JOIN teams t ON t.id = m.team_id WHERE m.user_id = a.user_id
) mine
"""


class _Live(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and its person's counters before this statement's requests with it."""

    session_id: int
    user_id: int
    user_name: str
    user_email: str
    operator: bool
    last_used_at: datetime
    admitted_at: datetime
    window_before: int
    window_left: float
    team_ids: list[int]
    team_tiers: list[str]
    team_names: list[str]
    team_roles: list[Role]
    postponed: bool = False


def session_batches(pool: asyncpg.Pool, per_minute: int) -> Batches[_Live]:
    """Admission of sessions, each person's with so many requests a minute."""
    return Batches(pool, _ask, partial(_settle, per_minute))


async def _ask(connection: Connection, requests: Asked) -> dict[bytes, _Live]:
    counts = [len(addresses) for addresses in requests.values()]
    rows = await connection.fetch(_ADMIT, [*requests], counts, _WINDOW, _USED)
    return {row["hash"]: msgspec.convert(dict(row), _Live) for row in rows}


def _settle(per_minute: int, batch: list[Waiter], live: _Live | None) -> None:
    """Gives each request of a session its answer. They were counted together, in this order."""
    principal = None if live is None else _principal(live, per_minute)
    for place, (_, answer) in enumerate(batch):
        if answer.done():  # its client has gone; it was counted all the same
            continue
        try:
            if live is None or principal is None:
                raise SessionEnded
            answer.set_result(Admitted(principal, _allowance(live, place, per_minute)))
        except AppError as refusal:
            answer.set_exception(refusal)


def _allowance(live: _Live, place: int, per_minute: int) -> Allowance:
    """What is left after the request at this place of its batch. Raises `RateLimitExceeded`."""
    before = live.window_before + place
    # A window that another process opened while this statement waited begins after its clock was read.
    resets_in = min(WINDOW_SECONDS, max(1, math.ceil(live.window_left)))
    if before >= per_minute:
        raise RateLimitExceeded(per_minute, resets_in, "You")
    return Allowance(limit=per_minute, remaining=per_minute - before - 1, resets_in=resets_in)


def _principal(live: _Live, per_minute: int) -> Principal:
    """The person, with all scopes that somebody like them may have: their roles say what they may do."""
    return Principal(
        user_id=live.user_id,
        user_name=live.user_name,
        user_email=live.user_email,
        key_id=0,
        session_id=live.session_id,
        key_name=KEY_NAME,
        preview="",
        scopes=_ALL_SCOPES if live.operator else _TEAM_SCOPES,
        requests_per_minute=per_minute,
        monthly_quota=None,
        allowed_ips=[],
        inactive_ttl_days=None,
        last_used_at=live.last_used_at,
        key_team_id=None,
        databases=None,
        team_ids=live.team_ids,
        team_tiers=live.team_tiers,
        team_names=live.team_names,
        team_roles=live.team_roles,
        operator=live.operator,
        admitted_at=live.admitted_at,
    )
