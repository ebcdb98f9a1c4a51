"""Deliveries that are to be sent: rows that wait for their endpoint, and cost nothing meanwhile.

The endpoint's row says when the next of them is to be attempted (`next_attempt_at`; null when none waits). A webhook
worker claims the endpoints that are due, attempts some of what waits for each, the longest due first, and says anew
when it is due. A claim that is not renewed expires: what a killed worker had claimed, another one takes up.

Where both are locked, the endpoint's row comes before its deliveries', as in a revocation.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.store.session import execute, fetch_all, fetch_value, fetch_values, transaction
from app.webhooks.circuit import BREAKS_AT

CLAIM_SECONDS = 5.0
"""How long a claim holds unless it is renewed: the delay that a killed worker costs."""
_ENDPOINTS_OF_A_TEAM = 8
"""How many of a team's endpoints are claimed at the same time, by all workers together, and as many for probes: a team
with many endpoints that hang holds up no other, and none of its own that are well."""
MOST_ENDED = 1000
"""How many deliveries one transaction ends at most. It has the endpoint's row locked, for which the dispatch of other
teams' events may wait."""
OVERDUE = "The receiver gave no answer for as long as the schedule lasts."
REVOKED = "The endpoint is revoked."


class ClaimedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    broken: bool
    """Whether its circuit is broken: only one probe may be sent."""
    revoked: bool
    """Whether nothing may be sent any more: what still waits is to be ended."""


class WaitingDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery whose next attempt is due: the one that follows `spent` others of its round."""

    id: int
    round: int
    spent: int


class WaitingEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint for which deliveries wait, as an operator sees it."""

    endpoint_id: int
    team_id: int
    url: str
    waiting: int
    """How many deliveries wait."""
    hanging: bool
    """Whether its receiver doesn't answer: only probes are sent, and what waits is sent when one is answered."""
    next_attempt_at: datetime | None
    last_success_at: datetime | None


class LostDelivery(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    endpoint_id: int


async def hold(delivery: WaitingDelivery, endpoint: int, *, seconds: float) -> None:
    """Has the delivery wait for `seconds` more, while its attempt is under way. Does nothing where that was recorded
    meanwhile."""
    async with transaction():
        await announce([endpoint], seconds)
        await execute(_POSTPONE, delivery.id, delivery.round, delivery.spent, seconds)


async def announce(endpoints: Sequence[int], seconds: float) -> None:
    """Notes that something waits for these endpoints which is due in so many seconds. Call it in the transaction that
    has it wait."""
    # Locked by a statement of its own, so that the next one sees what a release has written meanwhile.
    await execute(
        "SELECT 1 FROM webhook_endpoints WHERE id = any($1::bigint[]) ORDER BY id FOR NO KEY UPDATE", endpoints
    )
    # Most of those that are served are due already, and their rows stay as they are.
    await execute(
        """
        UPDATE webhook_endpoints SET next_attempt_at = greatest(now() + make_interval(secs => $2), circuit_until)
        WHERE id = any($1::bigint[])
          AND coalesce(next_attempt_at, 'infinity') > greatest(now() + make_interval(secs => $2), circuit_until)
        """,
        endpoints,
        seconds,
    )


async def claim(worker: UUID, most: int, *, probes: int) -> list[ClaimedEndpoint]:
    """Claims at most so many endpoints that are due and that no worker has claimed, the teams in turn. At most `probes`
    of them have a broken circuit."""
    return await fetch_all(
        ClaimedEndpoint, _CLAIM, worker, most, CLAIM_SECONDS, _ENDPOINTS_OF_A_TEAM, BREAKS_AT, probes
    )


async def renew(worker: UUID, endpoints: Sequence[int]) -> None:
    """Renews this worker's claims on these endpoints, which it is serving, where a fifth of the claim has passed. A
    claim whose release failed is none of them: it expires. One whose row is locked is left for the next time, and holds
    up no other."""
    await execute(
        """
        UPDATE webhook_endpoints SET claimed_until = now() + make_interval(secs => $2)
        WHERE id IN (
            SELECT id FROM webhook_endpoints WHERE id = any($4::bigint[]) AND claimed_by = $1
            AND claimed_until > now() AND claimed_until <= now() + make_interval(secs => $3)
            FOR NO KEY UPDATE SKIP LOCKED
        )
        """,
        worker,
        CLAIM_SECONDS,
        0.8 * CLAIM_SECONDS,
        list(endpoints),
    )


async def list_due(endpoint: int, most: int) -> list[WaitingDelivery]:
    """The deliveries that wait for the endpoint and may be attempted, the longest due first."""
    return await fetch_all(
        WaitingDelivery,
        "SELECT id, round, spent FROM webhook_deliveries"
        " WHERE endpoint_id = $1 AND waiting AND next_attempt_at <= now() ORDER BY next_attempt_at, id LIMIT $2",
        endpoint,
        most,
    )


async def release(worker: UUID, endpoint: int, *, pause: float = 0) -> bool | None:
    """Ends the claim, and says when the endpoint is due again: not within `pause` seconds, but at once where it is
    revoked and something still waits. Returns whether the circuit is broken; None where the worker had lost its
    claim."""
    async with transaction():
        # Locked first: what has begun to wait by then is in sight of the second statement, and what begins later says
        # so itself.
        await execute(_LOCK, endpoint)
        return await fetch_value(bool, _RELEASE, endpoint, worker, pause, BREAKS_AT)


async def postpone(delivery: WaitingDelivery, seconds: float) -> None:
    """Puts the next attempt off, which counts as no attempt. Does nothing where one was recorded meanwhile: the wait
    that follows it stays."""
    await execute(_POSTPONE, delivery.id, delivery.round, delivery.spent, seconds)


async def end_overdue(endpoint: int, lifetime: timedelta) -> None:
    """Ends what has waited for the endpoint for longer than `lifetime`, in as many transactions as that takes."""
    # Looked for before the row is locked: that reads all that waits.
    while overdue := await fetch_values(int, _OVERDUE, endpoint, lifetime, MOST_ENDED):
        async with transaction():
            await execute(_LOCK, endpoint)
            await execute(_END_OVERDUE, overdue, lifetime, OVERDUE)


async def end_revoked(endpoint: int) -> None:
    """Ends what waits for an endpoint that is revoked: no more than `MOST_ENDED` deliveries, the longest due first. A
    worker ends what is left when it claims the endpoint, which is due until nothing waits."""
    async with transaction():
        await execute(_LOCK, endpoint)
        await execute(_END_REVOKED, endpoint, REVOKED, MOST_ENDED)


async def list_endpoints() -> list[WaitingEndpoint]:
    """All endpoints for which deliveries wait, those with most first."""
    return await fetch_all(
        WaitingEndpoint,
        """
        SELECT w.id AS endpoint_id, w.team_id, w.url, d.waiting, w.circuit_until IS NOT NULL AS hanging,
               w.next_attempt_at, w.last_success_at
        FROM (SELECT endpoint_id, count(*) AS waiting FROM webhook_deliveries WHERE waiting GROUP BY endpoint_id) d
        JOIN webhook_endpoints w ON w.id = d.endpoint_id ORDER BY d.waiting DESC, w.id
        """,
    )


async def wake_forgotten() -> list[int]:
    """Makes endpoints due for which deliveries wait without anything that says when: none, unless rows were changed by
    hand. Returns them."""
    return await fetch_values(
        int,
        """
        UPDATE webhook_endpoints w SET next_attempt_at = now() WHERE next_attempt_at IS NULL AND claimed_until IS NULL
        AND EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.waiting) RETURNING id
        """,
    )


async def take_over(deliveries: Sequence[int]) -> None:
    """Has these deliveries wait for their endpoints, as far as they are pending: they were begun by an earlier version,
    which made first attempts in workflows."""
    async with transaction():
        endpoints = await fetch_values(
            int, "SELECT DISTINCT endpoint_id FROM webhook_deliveries WHERE id = any($1::bigint[])", list(deliveries)
        )
        await announce(sorted(endpoints), 0)
        await execute(
            "UPDATE webhook_deliveries SET waiting = true WHERE id = any($1::bigint[]) AND status = 'pending'",
            list(deliveries),
        )


async def take_over_lost(patience: timedelta, most: int) -> list[LostDelivery]:
    """Takes over deliveries whose first attempt was due longer ago than `patience`: an earlier version's worker has
    ended before it was made. Returns them."""
    lost = await fetch_all(
        LostDelivery,
        "SELECT id, endpoint_id FROM webhook_deliveries"
        " WHERE status = 'pending' AND NOT waiting AND next_attempt_at < now() - $1::interval"
        " ORDER BY next_attempt_at LIMIT $2",
        patience,
        most,
    )
    if lost:
        await take_over([one.id for one in lost])
    return lost


_LOCK = "SELECT 1 FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE"
_POSTPONE = """
UPDATE webhook_deliveries SET next_attempt_at = now() + make_interval(secs => $4)
WHERE id = $1 AND round = $2 AND spent = $3 AND waiting
"""
# The probes are chosen first: those that find no place take no turn of their team from its other endpoints.
_CLAIM = """
WITH claimed AS (
    SELECT team_id, slow_failures >= $5 AS broken, count(*) AS endpoints FROM webhook_endpoints
    WHERE claimed_until > now() GROUP BY 1, 2
), due AS (
    SELECT id, w.team_id, next_attempt_at, slow_failures >= $5 AS broken, coalesce(claimed.endpoints, 0) AS held,
           row_number() OVER (PARTITION BY w.team_id, slow_failures >= $5 ORDER BY next_attempt_at, id)
           + coalesce(claimed.endpoints, 0) AS turn
    FROM webhook_endpoints w
    LEFT JOIN claimed ON claimed.team_id = w.team_id AND claimed.broken = (slow_failures >= $5)
    WHERE next_attempt_at <= now() AND (claimed_until IS NULL OR claimed_until <= now())
      AND (circuit_until IS NULL OR circuit_until <= now()) AND (slow_failures < $5 OR $6 > 0)
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY broken ORDER BY turn, next_attempt_at) AS place FROM due
), admitted AS (
    SELECT id, next_attempt_at,
           row_number() OVER (PARTITION BY team_id, broken ORDER BY next_attempt_at, id) + held AS turn
    FROM placed WHERE NOT broken OR place <= $6
)
UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + make_interval(secs => $3)
WHERE id IN (
    SELECT w.id FROM webhook_endpoints w JOIN admitted USING (id)
    WHERE admitted.turn <= $4 AND w.next_attempt_at <= now() AND (w.claimed_until IS NULL OR w.claimed_until <= now())
    ORDER BY admitted.turn, admitted.next_attempt_at LIMIT $2 FOR NO KEY UPDATE OF w SKIP LOCKED
)
RETURNING id, slow_failures >= $5 AS broken, revoked_at IS NOT NULL AS revoked
"""
# Not before now: those that were served longest ago are next.
_RELEASE = """
UPDATE webhook_endpoints SET claimed_by = NULL, claimed_until = NULL, next_attempt_at = (
    SELECT CASE WHEN revoked_at IS NOT NULL THEN now()
                ELSE greatest(d.next_attempt_at, now() + make_interval(secs => $3), circuit_until) END
    FROM webhook_deliveries d WHERE d.endpoint_id = $1 AND d.waiting ORDER BY d.next_attempt_at LIMIT 1
)
WHERE id = $1 AND claimed_by = $2 RETURNING slow_failures >= $4
"""
_OVERDUE = """
SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND waiting AND round_started_at < now() - $2::interval
ORDER BY next_attempt_at, id LIMIT $3
"""
# What has begun a new round meanwhile waits on.
_END_OVERDUE = """
UPDATE webhook_deliveries SET status = 'failed', waiting = false, error_message = $3, finished_at = now(),
       next_attempt_at = NULL
WHERE id = any($1::bigint[]) AND waiting AND round_started_at < now() - $2::interval
"""
# What has arrived while this waited for its row stays delivered: that it waits is looked at again.
_END_REVOKED = """
UPDATE webhook_deliveries SET status = 'failed', waiting = false, error_message = $2, finished_at = now(),
       next_attempt_at = NULL
WHERE waiting AND id IN (
    SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND waiting ORDER BY next_attempt_at, id LIMIT $3
)
"""
