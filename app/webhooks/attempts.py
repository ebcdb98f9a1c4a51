"""One attempt of a delivery: whether it is to be made, the request, and its record. Safe to repeat at any point.

A process that dies between the request and its record sends again, under the same `webhook-id`: at least once, never
zero. An attempt that was recorded is not made again. A delivery that is to be sent again later waits for its endpoint
(`app.webhooks.waiting`).
"""

import random
from datetime import datetime, timedelta
from time import time
from uuid import UUID

import msgspec

from app.core.clock import utc_now
from app.core.limiter import LimitReached
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.tracing.context import TRACEPARENT, current_traceparent, parse_traceparent
from app.core.tracing.encoding import Attributes
from app.core.tracing.spans import NO_SPAN, NoSpan, SpanKind, Tracer, TraceSpan
from app.store.session import execute, fetch_one, transaction
from app.webhooks import waiting
from app.webhooks.attempt_slots import AttemptSlots
from app.webhooks.circuit import Circuit, is_broken, is_known_well
from app.webhooks.egress.sender import AttemptResult, Sender
from app.webhooks.records import MOST_ATTEMPTS, MOST_SIGNING, party_of, secret_place
from app.webhooks.signing import signed_headers
from app.webhooks.waiting import REVOKED, WaitingDelivery

_JITTER = 0.2
_SLACK = timedelta(hours=1)
"""By how much a broken circuit may lengthen the schedule, beyond its own length."""
_PATIENCE_SECONDS = 0.25
"""How long an attempt waits for room beside others of its endpoint and its team."""


class _Due(msgspec.Struct, frozen=True, kw_only=True):
    """All that an attempt needs, in one query."""

    id: int
    webhook_id: str
    endpoint_id: int
    team_id: int
    event_type: str
    waiting: bool
    round: int
    spent: int
    round_started_at: datetime
    payload: str
    traceparent: str | None
    url: str
    revoked: bool
    claimed_by: UUID | None
    """The worker whose claim on the endpoint holds."""
    slow_failures: int
    last_success_at: datetime | None
    secret_ids: list[UUID]
    secrets_sealed: list[bytes]


class Payload(msgspec.Struct):
    """The body's fields in the order of the specification; jsonb has another."""

    event: str
    timestamp: str
    data: msgspec.Raw


class Attempts:
    """Makes the attempts of this process: a limited number for one endpoint at the same time."""

    def __init__(self, box: SecretBox, sender: Sender, settings: Settings, tracer: Tracer | None = None) -> None:
        """`tracer` is that of the process, if it traces."""
        self._box = box
        self._tracer = tracer
        self._sender = sender
        self._schedule = settings.webhook_retry_schedule
        self._lifetime = timedelta(seconds=sum(self._schedule) * (1 + _JITTER)) + _SLACK
        self._circuit = Circuit(settings)
        self._slots = AttemptSlots(settings.webhook_concurrency)

    async def make(self, delivery: WaitingDelivery, *, worker: UUID, probing: bool) -> bool:
        """Makes the attempt that a waiting delivery is due for. Returns False where nothing can be sent to its endpoint
        now, or `worker` has lost its claim on that: another may be sending the same. With `probing` it is made also
        where the endpoint's circuit is broken."""
        due = await fetch_one(_Due, _DUE, delivery.id, MOST_SIGNING)
        if due is None or (due.round, due.spent, due.waiting) != (delivery.round, delivery.spent, True):
            return True
        if due.revoked:
            await execute(_END, due.id, REVOKED)
            return True
        broken = is_broken(due.slow_failures)
        if due.claimed_by != worker or (broken and not probing):
            return False
        try:
            await self._send(due, probing=broken)
        except LimitReached:
            return False
        return True

    async def _send(self, due: _Due, *, probing: bool) -> None:
        async with self._slots.slot(due.endpoint_id, due.team_id, patience=_PATIENCE_SECONDS):
            answer = await self._post(due)
        if not answer.delivered:
            await self._record_failure(due, answer, probing=probing)
            return
        await _record(due, answer, last=False, wait=0)
        if not is_known_well(due.slow_failures, due.last_success_at):
            await self._circuit.note(due.endpoint_id, answer, probing=probing)

    async def _post(self, due: _Due) -> AttemptResult:
        with self._span(due) as span:
            headers, body = self._signed(due)
            if (traceparent := current_traceparent()) is not None:
                headers[TRACEPARENT] = traceparent
            answer = await self._sender.send(due.url, headers, body, party=party_of(due.team_id))
            if answer.code is not None:
                span.set("http.response.status_code", answer.code)
            if not answer.delivered:
                span.fail("not_delivered")
        return answer

    def _span(self, due: _Due) -> TraceSpan | NoSpan:
        """A span within the trace of the event's change. The receiver's address is its team's own words, and not in the
        span."""
        if self._tracer is None:
            return NO_SPAN
        attributes: Attributes = {
            "headwater.delivery": due.webhook_id,
            "headwater.event": due.event_type,
            "headwater.endpoint_id": due.endpoint_id,
            "headwater.team_id": due.team_id,
            "headwater.attempt": due.spent + 1,
        }
        return self._tracer.begin(
            "webhook", SpanKind.CLIENT, parent=parse_traceparent(due.traceparent), attributes=attributes
        )

    async def _record_failure(self, due: _Due, answer: AttemptResult, *, probing: bool) -> None:
        spent = due.spent + 1
        overdue = is_broken(due.slow_failures) and utc_now() - due.round_started_at > self._lifetime
        last = spent >= len(self._schedule) or overdue
        wait = 0.0 if last else max(jittered(self._schedule[spent]), _lengthened(answer.retry_after or 0))
        async with transaction():
            await self._circuit.note(due.endpoint_id, answer, probing=probing)
            if not last:
                await waiting.announce([due.endpoint_id], wait)
            await _record(due, answer, last=last, wait=wait)
        if probing and answer.code is None:
            await waiting.end_overdue(due.endpoint_id, self._lifetime)

    def _signed(self, due: _Due) -> tuple[dict[str, str], bytes]:
        """The headers and the body. Raises `InvalidSecret`."""
        body = body_of(due.payload)
        sealed = zip(due.secret_ids, due.secrets_sealed, strict=True)
        headers = signed_headers(
            [self._box.open(secret, secret_place(uuid)) for uuid, secret in sealed],
            event=due.event_type,
            webhook_id=due.webhook_id,
            timestamp=int(time()),
            body=body,
        )
        return headers, body


async def _record(due: _Due, answer: AttemptResult, *, last: bool, wait: float) -> None:
    await execute(
        _RECORD,
        due.id,
        answer.code,
        answer.error,
        answer.body,
        round(answer.duration * 1000),
        due.round,
        answer.delivered,
        last,
        wait,
        # Beside the new one.
        MOST_ATTEMPTS - 1,
    )


def jittered(seconds: float) -> float:
    """The time, up to a fifth more or less, so that deliveries that failed together don't come back together."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, keeps no secret


def _lengthened(seconds: float) -> float:
    """The time, up to a fifth more: what a receiver asked for is kept, and deliveries that it put off together don't
    come back together."""
    return seconds * random.uniform(1, 1 + _JITTER)  # noqa: S311 - as above


def body_of(payload: str) -> bytes:
    """The raw body, the same for each attempt."""
    return msgspec.json.encode(msgspec.json.decode(payload, type=Payload))


_DUE = """
SELECT d.id, d.webhook_id, d.endpoint_id, w.team_id, d.event_type, d.waiting, d.round, d.spent,
       d.round_started_at, coalesce(d.payload, e.payload::text) AS payload, w.url,
       e.traceparent,
       w.revoked_at IS NOT NULL AS revoked, CASE WHEN w.claimed_until > now() THEN w.claimed_by END AS claimed_by,
       w.slow_failures, w.last_success_at,
       ARRAY(SELECT s.uuid FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC LIMIT $2) AS secret_ids,
       ARRAY(SELECT s.secret_sealed FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC LIMIT $2) AS secrets_sealed
FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id LEFT JOIN events e ON e.id = d.event_id
WHERE d.id = $1
"""
_END = """
UPDATE webhook_deliveries SET status = 'failed', waiting = false, error_message = $2, finished_at = now(),
       next_attempt_at = NULL
WHERE id = $1 AND status = 'pending'
"""
# A team may ask for a delivery again and again, and each time there is an attempt more: only the last ones are kept.
# What was asked for again meanwhile stays in its new round; what a revocation ended stays failed, unless it arrived.
# What has arrived shows the answer that took it, whatever the outcome of an attempt beside it.
_RECORD = """
WITH recorded AS (
    INSERT INTO webhook_attempts (delivery_id, response_code, error_message, response_body, duration_ms)
    SELECT id, $2, $3, $4, $5 FROM webhook_deliveries WHERE id = $1
), forgotten AS (
    DELETE FROM webhook_attempts WHERE delivery_id = $1 AND id <= (
        SELECT id FROM webhook_attempts WHERE delivery_id = $1 ORDER BY id DESC OFFSET $10 LIMIT 1
    )
)
UPDATE webhook_deliveries SET
    attempt_count = attempt_count + 1,
    spent = spent + (round = $6)::int,
    response_code = CASE WHEN status = 'delivered' AND NOT $7 THEN response_code ELSE $2 END,
    error_message = CASE WHEN status = 'pending' OR $7 THEN $3 ELSE error_message END,
    status = CASE WHEN round <> $6 THEN status WHEN $7 THEN 'delivered'
                  WHEN status = 'pending' AND $8 THEN 'failed' ELSE status END,
    waiting = CASE WHEN round <> $6 THEN waiting ELSE NOT $7 AND NOT $8 AND status = 'pending' END,
    next_attempt_at = CASE WHEN round <> $6 THEN next_attempt_at
                           WHEN $7 OR $8 OR status <> 'pending' THEN NULL
                           ELSE now() + make_interval(secs => $9) END,
    finished_at = CASE WHEN round <> $6 THEN finished_at WHEN $7 OR $8 THEN now() ELSE finished_at END
WHERE id = $1
"""
