"""Letting a request in: its key, the key's controls, its rate and its monthly quota, in one round trip.

The counters live in our own database, so that they hold over all API processes; one statement reads the keys and
counts. Requests that arrive while such statements are under way share the next one, whatever their keys. Its
transaction doesn't wait for the disk: what a crash of our database may forget is the last moments' counts.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import asyncpg
import msgspec
from asyncpg import Connection

from app.auth.bearer import bearer_key
from app.auth.client_address import Address
from app.auth.keys import hash_key
from app.auth.principal import Principal
from app.core.errors import (
    ApiKeyExpired,
    AppError,
    InvalidApiKey,
    IpNotAllowed,
    MonthlyQuotaExceeded,
    NotAMember,
    RateLimitExceeded,
    rate_limit_headers,
)
from app.store.connections import StoreConnection
from app.store.session import APPLICATION_NAME, keep_session

WINDOW_SECONDS = 60
_WINDOW = timedelta(seconds=WINDOW_SECONDS)
_STATEMENTS = 2
"""At the same time: while one is under way, the next one's requests collect. A second, so that a key whose row another
process holds doesn't make all others wait."""
_MOST_REQUESTS = 256
"""In one statement."""


_Waiter = tuple[Address, "asyncio.Future[Admitted]"]


class Allowance(msgspec.Struct, frozen=True):
    """What is left to a key in its present window."""

    limit: int
    remaining: int
    resets_in: int
    """Seconds."""


class Admitted(msgspec.Struct, frozen=True):
    principal: Principal
    allowance: Allowance


class _Verdict(Principal, frozen=True, kw_only=True):
    """The key's row, and the counters after this statement's requests. None where nothing was counted."""

    postponed: bool
    """Requests with this key's other secret are counted now, these later."""
    revoked: bool
    expired: bool
    allowed: list[bool]
    window_count: int | None
    window_left: float | None
    month_count: int | None
    month_added: int | None
    month_left: float


# The counters count attempts, not successes: how many were let in follows from the count before and the limit, and
# needs no second statement. In the UPDATE, columns of `c` are those of the newest version of the row, also after
# waiting for another process's lock on it. `locked` takes the locks in one order for all, or two processes with the
# same keys would wait for each other. During the overlap of a rotation a key has two secrets: the requests with one
# of them are counted, those with the other come next.
_ADMIT = """
WITH asked AS (
    SELECT hash, array_agg(address::inet ORDER BY place) AS addresses
    FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS one (hash, address, place) GROUP BY hash
), named AS (
    SELECT asked.hash AS asked_hash, asked.addresses, false AS postponed, k.*
    FROM asked JOIN api_keys k ON k.hash = asked.hash
    UNION ALL
    SELECT asked.hash, asked.addresses, EXISTS (SELECT FROM asked present WHERE present.hash = k.hash), k.*
    FROM asked JOIN api_keys k ON k.previous_hash = asked.hash WHERE k.previous_until > now()
), key AS (
    SELECT k.*, u.name AS user_name, u.email AS user_email, u.operator, c.last_used_at, clock_timestamp() AS at,
           coalesce(k.expires_at <= now(), false) OR coalesce(
               coalesce(c.last_used_at, k.created_at) + make_interval(days => k.inactive_ttl_days) <= now(), false
           ) AS expired,
           array(SELECT cardinality(k.allowed_ips) = 0 OR ip <<= ANY (k.allowed_ips::inet[])
                 FROM unnest(k.addresses) WITH ORDINALITY AS one (ip, place) ORDER BY place) AS allowed
    FROM named k JOIN users u ON u.id = k.user_id JOIN api_key_usage c ON c.key_id = k.id
), asking AS MATERIALIZED (
    SELECT key.*, (SELECT count(*)::int FROM unnest(key.allowed) AS one (ok) WHERE ok) AS asked,
           date_trunc('month', key.at AT TIME ZONE 'UTC')::date AS this_month
    FROM key
), locked AS MATERIALIZED (
    SELECT c.key_id FROM api_key_usage c JOIN asking a ON a.id = c.key_id
    WHERE a.revoked_at IS NULL AND NOT a.expired AND a.asked > 0 AND NOT a.postponed
    ORDER BY c.key_id FOR NO KEY UPDATE OF c
), counted AS (
    UPDATE api_key_usage c SET
        last_used_at = a.at,
        window_start = CASE WHEN c.window_start > a.at - $3::interval THEN c.window_start ELSE a.at END,
        window_count = CASE WHEN c.window_start > a.at - $3::interval THEN c.window_count ELSE 0 END + a.asked,
        month = a.this_month,
        month_added = greatest(0, least(a.asked, a.requests_per_minute
            - CASE WHEN c.window_start > a.at - $3::interval THEN c.window_count ELSE 0 END)),
        month_count = CASE WHEN c.month = a.this_month THEN c.month_count ELSE 0 END
            + greatest(0, least(a.asked, a.requests_per_minute
                - CASE WHEN c.window_start > a.at - $3::interval THEN c.window_count ELSE 0 END))
    FROM locked JOIN asking a ON a.id = locked.key_id AND NOT a.postponed
    WHERE c.key_id = locked.key_id
    RETURNING c.key_id, c.window_count, c.month_count, c.month_added,
              extract(epoch FROM c.window_start + $3::interval - a.at)::float8 AS window_left
)
SELECT a.asked_hash AS hash, a.postponed,
       a.user_id, a.user_name, a.user_email, a.operator, a.id AS key_id, a.name AS key_name, a.preview, a.scopes,
       a.requests_per_minute, a.monthly_quota, a.allowed_ips, a.inactive_ttl_days, a.last_used_at,
       a.team_id AS key_team_id, a.databases, a.ended_teams,
       a.revoked_at IS NOT NULL AS revoked, a.expired, a.allowed,
       counted.window_count, counted.window_left, counted.month_count, counted.month_added,
       extract(epoch FROM a.this_month + interval '1 month' - a.at AT TIME ZONE 'UTC')::float8 AS month_left,
       coalesce(mine.ids, '{}') AS team_ids, coalesce(mine.tiers, '{}') AS team_tiers,
       coalesce(mine.names, '{}') AS team_names, coalesce(mine.roles, '{}') AS team_roles, a.at AS admitted_at
FROM asking a LEFT JOIN counted ON counted.key_id = a.id AND NOT a.postponed CROSS JOIN LATERAL (
    SELECT array_agg(t.id ORDER BY m.id) AS ids, array_agg(t.tier ORDER BY m.id) AS tiers,
           array_agg(t.name ORDER BY m.id) AS names, array_agg(m.role ORDER BY m.id) AS roles
    FROM memberships m JOIN teams t ON t.id = m.team_id
    WHERE m.user_id = a.user_id AND (a.team_id IS NULL OR m.team_id = a.team_id) AND m.team_id <> ALL (a.ended_teams)
) mine
"""


class Admission:
    """Decides on every request of one API process."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._waiting: dict[bytes, list[_Waiter]] = {}
        """By the hash of their key."""
        self._postponed: dict[bytes, list[_Waiter]] = {}
        """The same, of those that came with the same key's other text. The next statement is theirs alone, or they
        would come with that one again and again."""
        self._asking: set[bytes] = set()
        """Hashes of the keys that a statement under way is about. One key is in one statement at a time."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Those that still read what waits."""
        self._closing = False
        self._idle: list[Connection] = []
        """Taken from the pool for good: taking one and giving it back costs a quarter of what asking does."""

    async def admit(self, authorization: str | None, address: Address) -> Admitted:
        """Raises `Unauthorized`, `InvalidApiKey`, `ApiKeyExpired`, `IpNotAllowed`, `RateLimitExceeded` or
        `MonthlyQuotaExceeded`."""
        key_hash = hash_key(bearer_key(authorization))
        answer: asyncio.Future[Admitted] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key_hash, []).append((address, answer))
        if len(self._tasks) < _STATEMENTS:
            task = asyncio.create_task(self._serve())
            self._tasks.add(task)
        return await answer

    async def _serve(self) -> None:
        """Decides on what waits, batch by batch, until nothing does that another task isn't at."""
        while batch := self._take():
            try:
                async with self._connection() as connection:
                    verdicts = await self._ask(connection, batch)
                for key_hash, waiters in batch.items():
                    verdict = verdicts.get(key_hash)
                    if verdict is not None and verdict.postponed:
                        self._postponed.setdefault(key_hash, []).extend(waiters)
                    else:
                        _settle(waiters, verdict)
            except Exception as fault:
                _refuse(batch, fault)
            finally:
                self._asking -= batch.keys()
        # With no pause since the queue was empty, or a request could come in between and find nobody.
        self._tasks.discard(asyncio.current_task())

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """One that is nobody else's for the block. One that failed goes back to the pool, which finds out whether it is
        lost."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                break
            await self._pool.release(connection)
        else:
            connection = await self._pool.acquire()
        reusable = False
        try:
            yield connection
            reusable = not self._closing
        finally:
            if reusable:
                self._idle.append(connection)
            else:
                with suppress(Exception):
                    await self._pool.release(connection)

    async def close(self) -> None:
        """Gives its connections back, now or when what is under way has ended."""
        self._closing = True
        while self._idle:
            await self._pool.release(self._idle.pop())

    def _take(self) -> "dict[bytes, list[_Waiter]]":
        batch: dict[bytes, list[_Waiter]] = {}
        room = _MOST_REQUESTS
        source, free = self._postponed, [each for each in self._postponed if each not in self._asking]
        if not free:
            source, free = self._waiting, [each for each in self._waiting if each not in self._asking]
        for key_hash in free:
            waiters = source.pop(key_hash)
            batch[key_hash], later = waiters[:room], waiters[room:]
            if later:
                source[key_hash] = later
            room -= len(batch[key_hash])
            if not room:
                break
        self._asking |= batch.keys()
        return batch

    async def _ask(self, connection: Connection, batch: "dict[bytes, list[_Waiter]]") -> dict[bytes, _Verdict]:
        hashes = [key_hash for key_hash, waiters in batch.items() for _ in waiters]
        # As text: the driver would parse each of them again.
        addresses = [address.compressed for waiters in batch.values() for address, _ in waiters]
        rows = await connection.fetch(_ADMIT, hashes, addresses, _WINDOW)
        return {row["hash"]: msgspec.convert(dict(row), _Verdict) for row in rows}


@asynccontextmanager
async def admission(dsn: str) -> AsyncIterator[Admission]:
    """Admission on a pool of its own, for the block: its transactions wait for no disk, and never queue behind
    those that do."""
    settings = {
        "application_name": f"{APPLICATION_NAME} admission",
        "synchronous_commit": "off",
        # It is one statement, and planning it anew takes twice as long as executing it.
        "plan_cache_mode": "force_generic_plan",
    }
    async with asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=_STATEMENTS,
        timeout=5,
        command_timeout=10,
        server_settings=settings,
        reset=keep_session,
        connection_class=StoreConnection,
    ) as pool:
        admitting = Admission(pool)
        try:
            yield admitting
        finally:
            await admitting.close()


def _refuse(batch: "dict[bytes, list[_Waiter]]", fault: Exception) -> None:
    for _, answer in (waiter for waiters in batch.values() for waiter in waiters):
        if not answer.done():
            answer.set_exception(fault)


def _settle(batch: "list[_Waiter]", verdict: _Verdict | None) -> None:
    """Gives each request of a batch its answer. They were counted together, in this order."""
    place = 0
    for index, (_, answer) in enumerate(batch):
        if answer.done():  # its client has gone; it was counted all the same
            place += verdict is not None and verdict.allowed[index]
            continue
        try:
            if verdict is None or verdict.revoked:
                raise InvalidApiKey("This API key is unknown or revoked.")
            if not verdict.allowed[index]:
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


def _count(verdict: _Verdict, place: int) -> Admitted:
    """The request counted at this place of its batch. Raises `RateLimitExceeded` or `MonthlyQuotaExceeded`."""
    assert verdict.window_count is not None
    assert verdict.window_left is not None
    assert verdict.month_count is not None
    assert verdict.month_added is not None
    asked = sum(verdict.allowed)
    before = verdict.window_count - asked + place
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
