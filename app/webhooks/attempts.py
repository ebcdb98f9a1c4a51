"""One attempt of a delivery: whether it is to be made, the request, and its record. Safe to repeat at any point.

A process that dies between the request and its record sends again, under the same `webhook-id`: at least once, never
zero. An attempt that was recorded, with its answer lost, is not made again. What can't be sent now, and what is to be
sent again later, waits as a row (`app.webhooks.waiting`).
"""

import asyncio
import random
from datetime import datetime, timedelta
from time import time
from uuid import UUID

import msgspec
import structlog

from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus
from app.core.clock import utc_now
from app.core.limiter import LimitReached
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.egress.sender import AttemptResult, Sender
from app.store.session import execute, fetch_one, fetch_value, transaction
from app.webhooks import waiting
from app.webhooks.attempt_slots import AttemptSlots
from app.webhooks.circuit import Circuit, is_broken, is_known_well
from app.webhooks.records import party_of, secret_place
from app.webhooks.signing import signed_headers
from app.webhooks.waiting import WaitingDelivery

_JITTER = 0.2
_SLACK = timedelta(hours=1)
"""By how much a broken circuit may lengthen the schedule, beyond its own length."""
FIRST_AT_ONCE = 40
"""First attempts, within workflows' own tasks, of which a worker has a hundred."""
_FIRST_SECONDS = 1.0
"""How long a workflow's task waits for a first attempt: less than after which it would have to report to Temporal."""
_FIRST_PATIENCE_SECONDS, _PATIENCE_SECONDS = 0.25, 5.0
"""How long an attempt waits for room: a first one, which holds a workflow's task, and one of a delivery that waits."""
_HOLD_SECONDS = 30.0
"""Beyond an attempt's own time: when another is made in place of one whose process died."""
REVOKED = "The endpoint is revoked."

log = structlog.get_logger(__name__)


class _Due(msgspec.Struct, frozen=True, kw_only=True):
    """All that an attempt needs, in one query."""

    id: int
    webhook_id: str
    endpoint_id: int
    team_id: int
    event_type: str
    status: DeliveryStatus
    waiting: bool
    round: int
    spent: int
    round_started_at: datetime
    next_attempt_at: datetime | None
    error_message: str | None
    payload: str
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

    def __init__(
        self, box: SecretBox, sender: Sender, settings: Settings, *, first_at_once: int = FIRST_AT_ONCE
    ) -> None:
        """`first_at_once` is the maximum of first attempts that this process makes at the same time."""
        self._box = box
        self._sender = sender
        self._schedule = settings.webhook_retry_schedule
        self._lifetime = timedelta(seconds=sum(self._schedule) * (1 + _JITTER)) + _SLACK
        self._hold_seconds = settings.webhook_timeout_seconds + _HOLD_SECONDS
        self._circuit = Circuit(settings)
        self._slots = AttemptSlots(settings.webhook_concurrency)
        self._first_at_once = first_at_once
        self._waited_for = 0
        self._unattended: dict[AttemptRef, asyncio.Task[AttemptOutcome]] = {}
        self.changed = asyncio.Event()
        """Set when something has begun to wait that is due."""

    async def close(self) -> None:
        """Breaks off what is under way without a workflow: it is made again when its time comes."""
        tasks = list(self._unattended.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def make_first(self, attempt: AttemptRef) -> AttemptOutcome:
        """Sends and records; or has the delivery wait, where it can't be sent now. Where the receiver takes its time,
        the attempt goes on by itself, and the delivery waits in case this process dies."""
        due = await fetch_one(_Due, _DUE, attempt.delivery)
        if due is None or due.round != attempt.round:
            words = "Its record is gone." if due is None else "It was asked for again; that round goes on with it."
            return AttemptOutcome(status=DeliveryStatus.FAILED, spent=0, words=words)
        if (ended := await self._ended(due)) is not None:
            return ended
        if due.spent or due.waiting:
            return _begun_before(due)
        if due.slow_failures:
            return await self._defer(due, "The receiver kept others waiting lately.")
        if self._waited_for >= self._first_at_once:
            return await self._defer(due, "Many other attempts are under way.")
        self._waited_for += 1
        try:
            return await self._begin(due)
        except LimitReached:
            return await self._defer(due, "Other attempts for this endpoint or team are under way.")
        finally:
            self._waited_for -= 1

    async def make_next(self, delivery: WaitingDelivery, *, worker: UUID, probing: bool) -> bool:
        """The attempt that a waiting delivery is due for; False where nothing can be sent to its endpoint now, or
        `worker` has lost its claim on that: another may be sending the same. With `probing` also where its circuit is
        broken."""
        due = await fetch_one(_Due, _DUE, delivery.id)
        if due is None or (due.round, due.spent, due.waiting) != (delivery.round, delivery.spent, True):
            return True
        if await self._ended(due) is not None:
            return True
        broken = is_broken(due.slow_failures)
        if due.claimed_by != worker or (broken and not probing):
            return False
        try:
            await self._send(due, patience=_PATIENCE_SECONDS, probing=broken)
        except LimitReached:
            return False
        return True

    async def _ended(self, due: _Due) -> AttemptOutcome | None:
        if due.status is not DeliveryStatus.PENDING:
            return AttemptOutcome(status=due.status, spent=due.spent, words=due.error_message or "")
        if due.revoked:
            await execute(_END, due.id, REVOKED)
            return AttemptOutcome(status=DeliveryStatus.FAILED, spent=due.spent, words=REVOKED)
        return None

    async def _begin(self, due: _Due) -> AttemptOutcome:
        attempt = AttemptRef(delivery=due.id, round=due.round)
        # Asked for again while it is under way, as when its answer to Temporal failed: it is waited for, not repeated.
        sending = self._unattended.get(attempt)
        if sending is None:
            sending = asyncio.create_task(self._send(due, patience=_FIRST_PATIENCE_SECONDS))
            self._unattended[attempt] = sending
            sending.add_done_callback(lambda _: self._unattended.pop(attempt))
        done, _ = await asyncio.wait({sending}, timeout=_FIRST_SECONDS)
        if done:
            return sending.result()
        sending.add_done_callback(_log_failure)
        await waiting.hold(due.id, due.endpoint_id, due.round, due.spent, seconds=self._hold_seconds)
        words = "The receiver takes its time. The delivery's record says what comes of it."
        return AttemptOutcome(status=DeliveryStatus.PENDING, spent=due.spent, words=words)

    async def _defer(self, due: _Due, why: str) -> AttemptOutcome:
        """Counts as no attempt."""
        await waiting.hold(due.id, due.endpoint_id, due.round, due.spent)
        self.changed.set()
        words = f"Waits for its endpoint's turn. {why}"
        return AttemptOutcome(status=DeliveryStatus.PENDING, spent=due.spent, words=words)

    async def _send(self, due: _Due, *, patience: float, probing: bool = False) -> AttemptOutcome:
        async with self._slots.slot(due.endpoint_id, due.team_id, patience=patience):
            answer = await self._sender.send(due.url, *self._signed(due), party=party_of(due.team_id))
        if not answer.delivered:
            return await self._record_failure(due, answer, probing=probing)
        outcome = await self._record(due, answer, last=False, wait=0)
        if not is_known_well(due.slow_failures, due.last_success_at):
            await self._circuit.note(due.endpoint_id, answer, probing=probing)
        return outcome

    async def _record_failure(self, due: _Due, answer: AttemptResult, *, probing: bool) -> AttemptOutcome:
        spent = due.spent + 1
        overdue = is_broken(due.slow_failures) and utc_now() - due.round_started_at > self._lifetime
        last = spent >= len(self._schedule) or overdue
        wait = 0.0 if last else max(jittered(self._schedule[spent]), answer.retry_after or 0)
        async with transaction():
            await self._circuit.note(due.endpoint_id, answer, probing=probing)
            # For one that waited, the release of its endpoint says when that is due again.
            if not last and not due.waiting:
                await waiting.announce([due.endpoint_id], wait)
            outcome = await self._record(due, answer, last=last, wait=wait)
        if probing and answer.code is None:
            await waiting.end_overdue(due.endpoint_id, self._lifetime)
        return outcome

    async def _record(self, due: _Due, answer: AttemptResult, *, last: bool, wait: float) -> AttemptOutcome:
        status = await fetch_value(
            DeliveryStatus,
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
        )
        return AttemptOutcome(
            status=status or DeliveryStatus.FAILED, spent=due.spent + 1, wait_seconds=wait, words=answer.error or ""
        )

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


def _begun_before(due: _Due) -> AttemptOutcome:
    """Recorded, or put to wait, with the answer lost."""
    wait = (due.next_attempt_at - utc_now()).total_seconds() if due.next_attempt_at else 0.0
    return AttemptOutcome(
        status=DeliveryStatus.PENDING, spent=due.spent, wait_seconds=max(wait, 0), words=due.error_message or ""
    )


def _log_failure(ended: asyncio.Task[AttemptOutcome]) -> None:
    if not ended.cancelled() and (fault := ended.exception()) is not None:
        log.warning("attempt_not_recorded", reason=str(fault) or type(fault).__name__)


def jittered(seconds: float) -> float:
    """Up to a fifth more or less, so that what failed together doesn't come back together."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, keeps no secret


def body_of(payload: str) -> bytes:
    """The raw body, the same for each attempt."""
    return msgspec.json.encode(msgspec.json.decode(payload, type=Payload))


_DUE = """
SELECT d.id, d.webhook_id, d.endpoint_id, w.team_id, d.event_type, d.status, d.waiting, d.round, d.spent,
       d.round_started_at, d.next_attempt_at, d.error_message, coalesce(d.payload, e.payload::text) AS payload, w.url,
       w.revoked_at IS NOT NULL AS revoked, CASE WHEN w.claimed_until > now() THEN w.claimed_by END AS claimed_by,
       w.slow_failures, w.last_success_at,
       ARRAY(SELECT s.uuid FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC) AS secret_ids,
       ARRAY(SELECT s.secret_sealed FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC) AS secrets_sealed
FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id LEFT JOIN events e ON e.id = d.event_id
WHERE d.id = $1
"""
_END = """
UPDATE webhook_deliveries SET status = 'failed', waiting = false, error_message = $2, finished_at = now(),
       next_attempt_at = NULL
WHERE id = $1 AND status = 'pending'
"""
# What was asked for again meanwhile stays in its new round; what a revocation ended stays failed, unless it arrived.
# What has arrived shows the answer that took it, whatever the outcome of an attempt beside it.
_RECORD = """
WITH recorded AS (
    INSERT INTO webhook_attempts (delivery_id, response_code, error_message, response_body, duration_ms)
    SELECT id, $2, $3, $4, $5 FROM webhook_deliveries WHERE id = $1
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
WHERE id = $1 RETURNING status
"""
