"""Letting a request in: its key, the key's controls, its rate and its monthly quota, in one round trip. Or the session
of a person: see `app.auth.session_admission`.

The counters live in our own database, so that they hold over all API processes; one statement reads the keys and
counts. Requests that arrive while such statements are under way share the next one, whatever their keys. Its
transaction doesn't wait for the disk: what a crash of our database may forget is the last moments' counts.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import msgspec
from asyncpg import Connection

from app.auth.batches import STATEMENTS, WINDOW_SECONDS, Admitted, Allowance, Asked, Batches, Waiter
from app.auth.keys import PREFIX, hash_key
from app.auth.principal import Principal
from app.auth.session_admission import session_batches
from app.core.errors import (
    ApiKeyExpired,
    AppError,
    InvalidApiKey,
    IpNotAllowed,
    MonthlyQuotaExceeded,
    NotAMember,
    RateLimitExceeded,
    Unauthorized,
    rate_limit_headers,
)
from app.store import session
from app.store.connections import StoreConnection
from app.store.servers import connect_to_store
from app.store.session import APPLICATION_NAME, keep_session

_WINDOW = timedelta(seconds=WINDOW_SECONDS)


class _Verdict(Principal, frozen=True, kw_only=True):
    """The key's row, and the counters after this statement's requests: None where nothing was counted."""

    postponed: bool
    """Whether requests with this key's other secret are counted now, and these later."""
    revoked: bool
    expired: bool
    asked: int
    """The requests that came from where the key may be used."""
    allowed: list[bool] | None
    """For each request, whether it came from there; None for a key that may be used from anywhere."""
    window_count: int | None
    window_left: float | None
    month_count: int | None
    month_added: int | None
    month_left: float


# The minute's counter counts attempts, not successes: how many were let in follows from the count before and the limit,
# and needs no second statement. The month's counts no more than both limits let in, so that raising a quota helps at
# once; a key without one has null there, which least() passes over. In the UPDATE, columns of `c` are those of the
# newest version of the row, also after waiting for another process's lock on it. `locked` takes the locks in one order
# for all, or two processes with the same keys would wait for each other. During the overlap of a rotation a key has two
# secrets: the requests with one of them are counted, those with the other come next. Addresses are only read where the
# key has networks.
_ADMIT = """
WITH asking AS MATERIALIZED (
    SELECT one.hash AS asked_hash, k.*, k.hash <> one.hash AND k.hash = ANY ($1::bytea[]) AS postponed,
           c.last_used_at, clock_timestamp() AS at,
           coalesce(k.expires_at <= now(), false) OR coalesce(
               coalesce(c.last_used_at, k.created_at) + make_interval(days => k.inactive_ttl_days) <= now(), false
           ) AS expired,
           allowed.each AS allowed, coalesce(cardinality(array_positions(allowed.each, true)), one.requests) AS asked
    FROM unnest($1::bytea[], $2::int[], $3::text[]) AS one (hash, requests, addresses)
    JOIN api_keys k ON k.hash = one.hash OR (k.previous_hash = one.hash AND k.previous_until > now())
    JOIN api_key_usage c ON c.key_id = k.id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN cardinality(k.allowed_ips) > 0 THEN array(
            SELECT ip <<= ANY (k.allowed_ips::inet[])
            FROM unnest(string_to_array(one.addresses, ',')::inet[]) WITH ORDINALITY AS given (ip, place) ORDER BY place
        ) END AS each
    ) allowed
), locked AS MATERIALIZED (
    SELECT c.key_id, a.at, date_trunc('month', a.at AT TIME ZONE 'UTC')::date AS this_month, a.asked,
           a.requests_per_minute, a.monthly_quota
    FROM asking a JOIN api_key_usage c ON c.key_id = a.id
    WHERE a.revoked_at IS NULL AND NOT a.expired AND a.asked > 0 AND NOT a.postponed
    ORDER BY c.key_id FOR NO KEY UPDATE OF c
), counted AS (
    UPDATE api_key_usage c SET
        last_used_at = a.at,
        window_start = CASE WHEN c.window_start > a.at - $4::interval THEN c.window_start ELSE a.at END,
        window_count = CASE WHEN c.window_start > a.at - $4::interval THEN c.window_count ELSE 0 END + a.asked,
        month = a.this_month,
        month_added = greatest(0, least(a.asked, a.requests_per_minute
            - CASE WHEN c.window_start > a.at - $4::interval THEN c.window_count ELSE 0 END,
            a.monthly_quota - CASE WHEN c.month = a.this_month THEN c.month_count ELSE 0 END)),
        month_count = CASE WHEN c.month = a.this_month THEN c.month_count ELSE 0 END
            + greatest(0, least(a.asked, a.requests_per_minute
                - CASE WHEN c.window_start > a.at - $4::interval THEN c.window_count ELSE 0 END,
                a.monthly_quota - CASE WHEN c.month = a.this_month THEN c.month_count ELSE 0 END))
    FROM locked a WHERE c.key_id = a.key_id
    RETURNING c.key_id, c.window_count, c.month_count, c.month_added,
              extract(epoch FROM c.window_start + $4::interval - a.at)::float8 AS window_left
)
SELECT a.asked_hash AS key_hash, a.postponed,
       a.user_id, u.name AS user_name, u.email AS user_email, u.operator, a.id AS key_id, a.name AS key_name, a.preview,
       a.scopes, a.requests_per_minute, a.monthly_quota, a.allowed_ips, a.inactive_ttl_days, a.last_used_at,
       a.team_id AS key_team_id, a.databases, a.ended_teams,
       a.revoked_at IS NOT NULL AS revoked, a.expired, a.asked, a.allowed,
       counted.window_count, counted.window_left, counted.month_count, counted.month_added,
       extract(epoch FROM date_trunc('month', a.at AT TIME ZONE 'UTC') + interval '1 month'
                          - a.at AT TIME ZONE 'UTC')::float8 AS month_left,
       coalesce(mine.ids, '{}') AS team_ids, coalesce(mine.tiers, '{}') AS team_tiers,
       coalesce(mine.names, '{}') AS team_names, coalesce(mine.roles, '{}') AS team_roles, a.at AS admitted_at
FROM asking a JOIN users u ON u.id = a.user_id
LEFT JOIN counted ON counted.key_id = a.id AND NOT a.postponed CROSS JOIN LATERAL (
    SELECT array_agg(t.id ORDER BY m.id) AS ids, array_agg(t.tier ORDER BY m.id) AS tiers,
           array_agg(t.name ORDER BY m.id) AS names, array_agg(m.role ORDER BY m.id) AS roles
    FROM memberships m JOIN teams t ON t.id = m.team_id
    WHERE m.user_id = a.user_id AND (a.team_id IS NULL OR m.team_id = a.team_id) AND m.team_id <> ALL (a.ended_teams)
) mine
"""


class Admission:
    """Decides on every request of one API process."""

    def __init__(self, pool: asyncpg.Pool, sessions_per_minute: int) -> None:
        self._keys = Batches(pool, _ask, _settle)
        self._sessions = session_batches(pool, sessions_per_minute)

    async def admit(self, authorization: str | None, address: str) -> Admitted:
        """Lets a program in, by its key. Raises `Unauthorized`, `InvalidApiKey`, `ApiKeyExpired`, `IpNotAllowed`,
        `RateLimitExceeded` or `MonthlyQuotaExceeded`."""
        return await self._keys.admit(hash_key(_bearer_key(authorization)), address)

    async def admit_session(self, token: str, address: str) -> Admitted:
        """Lets a person in, by the token of their session. Raises `SessionEnded` or `RateLimitExceeded`."""
        return await self._sessions.admit(hash_key(token), address)

    async def close(self) -> None:
        """Gives its connections back, now or when what is under way has ended."""
        await self._keys.close()
        await self._sessions.close()


def _bearer_key(authorization: str | None) -> str:
    """The API key in the Authorization header (RFC 6750, section 2.1). Raises `Unauthorized` for a missing or malformed
    header, `InvalidApiKey` for a token that can't be a key of ours."""
    if authorization is None:
        raise Unauthorized("The Authorization header is missing. Send 'Authorization: Bearer pk_live_…'.")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthorized("The Authorization header is malformed. Send 'Authorization: Bearer pk_live_…'.")
    if not token.startswith(PREFIX):
        raise InvalidApiKey("This is not an API key of ours.")
    return token


async def _ask(connection: Connection, requests: Asked) -> dict[bytes, _Verdict]:
    counts = [len(addresses) for addresses in requests.values()]
    # As text: the driver would parse each of them again.
    addresses = [",".join(each) for each in requests.values()]
    rows = await connection.fetch(_ADMIT, [*requests], counts, addresses, _WINDOW)
    return {row["key_hash"]: msgspec.convert(dict(row), _Verdict) for row in rows}


@asynccontextmanager
async def admission(dsn: str, *, sessions_per_minute: int = 600) -> AsyncIterator[Admission]:
    """Admission on a pool of its own, for the block: its transactions wait for no disk, and never queue behind
    transactions that do."""
    settings = {
        "application_name": f"{APPLICATION_NAME} admission",
        "synchronous_commit": "off",
        # It is one statement, and planning it anew takes twice as long as executing it.
        "plan_cache_mode": "force_generic_plan",
    }
    async with asyncpg.create_pool(
        dsn,
        min_size=1,
        # Of keys, and of sessions.
        max_size=2 * STATEMENTS,
        timeout=session.CONNECT_SECONDS,
        command_timeout=10,
        server_settings=settings,
        reset=keep_session,
        connection_class=StoreConnection,
        connect=connect_to_store,
    ) as pool:
        admitting = Admission(pool, sessions_per_minute)
        try:
            yield admitting
        finally:
            await admitting.close()


def _settle(batch: list[Waiter], verdict: _Verdict | None) -> None:
    """Gives each request of a batch its answer. They were counted together, in this order."""
    place = 0
    for index, (_, answer) in enumerate(batch):
        if answer.done():  # its client has gone; it was counted all the same
            place += verdict is not None and _is_allowed(verdict, index)
            continue
        try:
            if verdict is None or verdict.revoked:
                raise InvalidApiKey("This API key is unknown or revoked.")
            if not _is_allowed(verdict, index):
                raise IpNotAllowed("This API key may not be used from this address.")
            if verdict.expired:
                raise ApiKeyExpired("This API key has expired.")
            admitted = _count(verdict, place)
            if verdict.key_team_id is not None and not verdict.team_ids:
                raise NotAMember(verdict.key_team_id)
            answer.set_result(admitted)
            place += 1
        except AppError as refusal:
            refusal.key_id = verdict.key_id if verdict is not None else None
            place += isinstance(refusal, RateLimitExceeded | MonthlyQuotaExceeded | NotAMember)
            answer.set_exception(refusal)


def _is_allowed(verdict: _Verdict, index: int) -> bool:
    return verdict.allowed is None or verdict.allowed[index]


def _count(verdict: _Verdict, place: int) -> Admitted:
    """Admits the request counted at this place of its batch. Raises `RateLimitExceeded` or `MonthlyQuotaExceeded`."""
    assert verdict.window_count is not None
    assert verdict.window_left is not None
    assert verdict.month_count is not None
    assert verdict.month_added is not None
    before = verdict.window_count - verdict.asked + place
    allowance = Allowance(
        limit=verdict.requests_per_minute,
        remaining=max(0, verdict.requests_per_minute - before - 1),
        # A window that another process opened while this statement waited begins after its clock was read.
        resets_in=min(WINDOW_SECONDS, max(1, math.ceil(verdict.window_left))),
    )
    if before >= verdict.requests_per_minute:
        raise RateLimitExceeded(allowance.limit, allowance.resets_in)
    if verdict.monthly_quota is not None:
        used = verdict.month_count - verdict.month_added + place
        if used >= verdict.monthly_quota:
            raise MonthlyQuotaExceeded(
                max(1, math.ceil(verdict.month_left)),
                rate_limit_headers(allowance.limit, allowance.remaining, allowance.resets_in),
            )
    return Admitted(verdict, allowance)
