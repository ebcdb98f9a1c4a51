"""One attempt of a delivery: whether it is to be made, the request, and its record. Safe to repeat at any point.

A process that dies between the request and its record sends again, under the same `webhook-id`: at least once, never
zero. An attempt that was recorded, with its answer lost, is not made again.
"""

import random
from datetime import datetime, timedelta
from time import time
from uuid import UUID

import msgspec

from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus
from app.core.clock import utc_now
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.egress.sender import Answer, Sender
from app.store.session import fetch, fetch_one
from app.webhooks import circuit
from app.webhooks.gate import Gate, NoRoom
from app.webhooks.records import party_of, secret_place
from app.webhooks.signing import signed_headers

_JITTER = 0.2
_SLACK = timedelta(hours=1)
"""By how much a broken circuit may lengthen the schedule, beyond its own length."""
_MOST_AT_HAND = 40
"""Within workflows' own tasks, of which a worker has a hundred. So many are only under way where receivers hang."""
REVOKED = "The endpoint is revoked."


class _Due(msgspec.Struct, frozen=True, kw_only=True):
    """All that an attempt needs, in one query."""

    id: int
    webhook_id: str
    endpoint_id: int
    team_id: int
    event_type: str
    status: DeliveryStatus
    round: int
    spent: int
    round_started_at: datetime
    next_attempt_at: datetime | None
    error_message: str | None
    payload: str
    url: str
    revoked: bool
    slow_failures: int
    circuit_open: bool
    last_success_at: datetime | None
    secret_ids: list[UUID]
    secrets_sealed: list[bytes]


class Payload(msgspec.Struct):
    """The body's fields in the order of the specification; the database keeps another."""

    event: str
    timestamp: str
    data: msgspec.Raw


class Attempts:
    """Makes them in this process, not too many at once for one endpoint."""

    def __init__(self, box: SecretBox, sender: Sender, settings: Settings) -> None:
        self._box = box
        self._sender = sender
        self._schedule = settings.webhook_retry_schedule
        self._lifetime = timedelta(seconds=sum(self._schedule) * (1 + _JITTER)) + _SLACK
        self._gate = Gate(settings.webhook_concurrency)
        self._at_hand = 0

    async def make(self, attempt: AttemptRef) -> AttemptOutcome:
        """Sends and records, or tells why not and when to come again."""
        due = await fetch_one(_Due, _DUE, attempt.delivery)
        if due is None or due.round != attempt.round:
            words = "Its record is gone." if due is None else "It was asked for again; that run goes on with it."
            return AttemptOutcome(status=DeliveryStatus.FAILED, spent=attempt.spent, words=words)
        if due.status is not DeliveryStatus.PENDING:
            return AttemptOutcome(status=due.status, spent=due.spent, words=due.error_message or "")
        if due.revoked:
            await fetch(_END, due.id, REVOKED)
            return AttemptOutcome(status=DeliveryStatus.FAILED, spent=due.spent, words=REVOKED)
        if due.spent > attempt.spent:
            return self._recorded_before(due)
        if not attempt.at_hand:
            return await self._send_in_turn(due)
        if due.slow_failures or self._at_hand >= _MOST_AT_HAND:
            return AttemptOutcome(status=DeliveryStatus.PENDING, spent=due.spent)
        self._at_hand += 1
        try:
            return await self._send_in_turn(due)
        finally:
            self._at_hand -= 1

    async def _send_in_turn(self, due: _Due) -> AttemptOutcome:
        try:
            return await self._send(due)
        except NoRoom as full:
            return await self._postpone(due, full.wait, "other attempts for this endpoint or team are under way")

    async def _send(self, due: _Due) -> AttemptOutcome:
        probing = circuit.is_broken(due.slow_failures) and not self._is_overdue(due)
        if probing and due.circuit_open:
            return await self._wait_for_the_probe(due)
        async with self._gate.entered(due.endpoint_id, due.team_id):
            if probing and not await circuit.take_probe(due.endpoint_id):
                return await self._wait_for_the_probe(due)
            answer = await self._sender.send(due.url, *self._signed(due), party=party_of(due.team_id))
        outcome = await self._record(due, answer)
        if not (answer.delivered and circuit.is_known_well(due.slow_failures, due.last_success_at)):
            await circuit.note(due.endpoint_id, answer, probing=probing)
        if answer.code is not None:
            self._gate.reopen(due.endpoint_id)
        return outcome

    async def _wait_for_the_probe(self, due: _Due) -> AttemptOutcome:
        wait = self._gate.book(due.endpoint_id, after=circuit.PAUSE_SECONDS)
        return await self._postpone(due, wait, "the receiver hangs, and is tried with one request at a time")

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

    async def _record(self, due: _Due, answer: Answer) -> AttemptOutcome:
        spent = due.spent + 1
        last = spent >= len(self._schedule) or self._is_overdue(due)
        wait = 0.0 if answer.delivered or last else max(self._wait(spent), answer.retry_after or 0)
        rows = await fetch(
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
        status = DeliveryStatus(rows[0]["status"]) if rows else DeliveryStatus.FAILED
        return AttemptOutcome(status=status, spent=spent, wait_seconds=wait, words=answer.error or "")

    async def _postpone(self, due: _Due, wait: float, why: str) -> AttemptOutcome:
        """Counts as no attempt, and the rest of the schedule moves with it."""
        await fetch(
            "UPDATE webhook_deliveries SET next_attempt_at = now() + make_interval(secs => $3)"
            " WHERE id = $1 AND round = $2 AND status = 'pending'",
            due.id,
            due.round,
            wait,
        )
        return AttemptOutcome(
            status=DeliveryStatus.PENDING, spent=due.spent, wait_seconds=wait, words=f"Postponed: {why}."
        )

    def _recorded_before(self, due: _Due) -> AttemptOutcome:
        wait = (due.next_attempt_at - utc_now()).total_seconds() if due.next_attempt_at else 0.0
        return AttemptOutcome(
            status=DeliveryStatus.PENDING, spent=due.spent, wait_seconds=max(wait, 0), words=due.error_message or ""
        )

    def _wait(self, spent: int) -> float:
        return jittered(self._schedule[spent])

    def _is_overdue(self, due: _Due) -> bool:
        """Kept so long by a broken circuit that its schedule would have ended by now: it gets one last attempt."""
        return circuit.is_broken(due.slow_failures) and utc_now() - due.round_started_at > self._lifetime


def jittered(seconds: float) -> float:
    """Up to a fifth more or less, so that what failed together doesn't come back together."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, keeps no secret


def body_of(payload: str) -> bytes:
    """The raw body, the same for each attempt."""
    return msgspec.json.encode(msgspec.json.decode(payload, type=Payload))


_DUE = """
SELECT d.id, d.webhook_id, d.endpoint_id, w.team_id, d.event_type, d.status, d.round, d.spent, d.round_started_at,
       d.next_attempt_at, d.error_message, coalesce(d.payload, e.payload::text) AS payload, w.url,
       w.revoked_at IS NOT NULL AS revoked, w.slow_failures, w.last_success_at,
       coalesce(w.circuit_until > now(), false) AS circuit_open,
       ARRAY(SELECT s.uuid FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC) AS secret_ids,
       ARRAY(SELECT s.secret_sealed FROM webhook_secrets s WHERE s.endpoint_id = w.id
             AND (s.expires_at IS NULL OR s.expires_at > now()) ORDER BY s.id DESC) AS secrets_sealed
FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id LEFT JOIN events e ON e.id = d.event_id
WHERE d.id = $1
"""
_END = """
UPDATE webhook_deliveries SET status = 'failed', error_message = $2, finished_at = now(), next_attempt_at = NULL
WHERE id = $1 AND status = 'pending'
"""
# What was asked for again meanwhile keeps its new round; what a revocation ended stays failed, unless it arrived. What
# has arrived shows the answer that took it, whatever an attempt beside that one still comes to.
_RECORD = """
WITH kept AS (
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
    next_attempt_at = CASE WHEN round <> $6 THEN next_attempt_at
                           WHEN $7 OR $8 OR status <> 'pending' THEN NULL
                           ELSE now() + make_interval(secs => $9) END,
    finished_at = CASE WHEN round <> $6 THEN finished_at WHEN $7 OR $8 THEN now() ELSE finished_at END
WHERE id = $1 RETURNING status
"""
