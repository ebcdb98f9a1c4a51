"""Deleting expired rows: one rule for each kind, in batches small enough that no statement locks many rows for long."""

from datetime import timedelta
from typing import Literal

import msgspec

from app.contracts.upkeep import SweepResult
from app.store.session import fetch

_BATCH = 500
_BATCHES = 20
"""The number of batches in one step."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long finished things are kept."""

    history: timedelta
    """Events and deliveries."""
    questions: timedelta


class SweepRule(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    """A text for the operator."""
    sql: str
    """Deletes at most `$1` rows, the oldest first, and skips locked ones."""
    kept: Literal["history", "questions"] | None = None
    """The retention that applies after they are finished: an interval, `$2`."""


SWEEPS = (
    SweepRule(
        what="expired idempotency keys",
        # A request that is still running is about to write its answer, so its row stays.
        sql="""
        DELETE FROM idempotency_keys WHERE id IN (
            SELECT id FROM idempotency_keys
            WHERE expires_at <= now() AND (response_status IS NOT NULL OR locked_until IS NULL OR locked_until <= now())
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
    SweepRule(
        what="old webhook deliveries",
        # Deletes their attempts too.
        sql="""
        DELETE FROM webhook_deliveries WHERE id IN (
            SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND finished_at < now() - $2::interval
            ORDER BY finished_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
        kept="history",
    ),
    SweepRule(
        what="webhook secrets that were replaced",
        # A lost answer, and the new secret in it, can be requested again as long as its idempotency key is kept.
        sql="""
        DELETE FROM webhook_secrets WHERE id IN (
            SELECT id FROM webhook_secrets WHERE expires_at < now() - interval '2 days'
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
    SweepRule(
        what="old events",
        # After their deliveries: a pending one still sends the event.
        sql="""
        DELETE FROM events WHERE id IN (
            SELECT id FROM events e WHERE dispatched_at IS NOT NULL AND created_at < now() - $2::interval
              AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_id = e.id)
            ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
        kept="history",
    ),
    SweepRule(
        what="old questions",
        # Today's questions stay, however short the retention, because they count against the allowance.
        sql="""
        DELETE FROM query_executions WHERE id IN (
            SELECT id FROM query_executions
            WHERE created_at < least(now() - $2::interval, date_trunc('day', now(), 'UTC')) AND reserved_until <= now()
            ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
        kept="questions",
    ),
)


def list_kinds() -> list[str]:
    return [sweep.what for sweep in SWEEPS]


async def sweep(what: str, retention: Retention, *, batch: int = _BATCH) -> SweepResult:
    """Deletes rows of one kind. Each batch is committed by itself, so that a step that dies keeps its progress.
    Raises `LookupError` for an unknown kind."""
    rule = _rule(what)
    removed = 0
    for _ in range(_BATCHES):
        gone = len(await fetch(rule.sql, batch, *([getattr(retention, rule.kept)] if rule.kept else [])))
        removed += gone
        if gone < batch:
            return SweepResult(removed=removed, more=False)
    return SweepResult(removed=removed, more=True)


def _rule(what: str) -> SweepRule:
    for rule in SWEEPS:
        if rule.what == what:
            return rule
    raise LookupError(f"nothing is known of {what}")
