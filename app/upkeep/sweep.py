"""Deleting expired rows: one rule for each kind, in batches small enough that no statement locks many rows for long."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Literal

import msgspec

from app.accounts.sessions.attempts import delete_old_attempts
from app.accounts.sessions.links import delete_expired_links
from app.accounts.sessions.passkey_records import delete_expired_challenges
from app.audit.actions import Action
from app.audit.events import append
from app.auth.sessions import delete_ended
from app.backups.records import delete_gone_backups
from app.blueprints.applications.retention import delete_old_applications, delete_old_logs
from app.contracts.upkeep import SweepResult
from app.credentials.rotations import delete_old, delete_secrets
from app.operations.ends import delete_old_operations
from app.outbox.events import delete_old_events
from app.queries.records import delete_old_executions
from app.store.session import transaction
from app.usage.metrics.sampling import drop_old_metrics
from app.web.idempotency_rows import delete_expired_keys
from app.webhooks.records import delete_old_deliveries, delete_replaced_secrets

_BATCH = 500
_BATCHES = 20
"""The number of batches in one step."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long finished things are kept."""

    history: timedelta
    """Events and deliveries."""
    questions: timedelta
    operations: timedelta
    """Operations, and what they have made: applications of blueprints, backups that are gone."""


class SweepRule(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    """A text for the operator."""
    delete: Callable[[int, timedelta], Awaitable[int]]
    """The owner's function. It deletes at most so many rows that were finished so long ago, the oldest first, skips
    locked ones, and returns how many it deleted."""
    retention: Literal["history", "questions", "operations"] | None = None
    """How long finished rows are kept; not at all where it is None."""
    commits: bool = False
    """The function has transactions of its own, whose locks would last too long in one of ours."""
    batch: int = _BATCH
    """Rows in one transaction: more of those that are small and many."""


SWEEPS = (
    SweepRule(what="expired idempotency keys", delete=delete_expired_keys),
    SweepRule(what="old webhook deliveries", delete=delete_old_deliveries, retention="history"),
    SweepRule(what="webhook secrets that were replaced", delete=delete_replaced_secrets),
    # After their deliveries.
    SweepRule(what="old events", delete=delete_old_events, retention="history"),
    SweepRule(what="passwords of rotations that ended", delete=delete_secrets),
    SweepRule(what="old rotations", delete=delete_old, retention="history"),
    SweepRule(what="backups that are gone", delete=delete_gone_backups, retention="operations"),
    SweepRule(what="old operations", delete=delete_old_operations, retention="operations"),
    SweepRule(what="logs of old applications", delete=delete_old_logs, retention="operations", batch=5000),
    # After their logs.
    SweepRule(what="old applications of blueprints", delete=delete_old_applications, retention="operations"),
    SweepRule(what="old metrics", delete=drop_old_metrics, commits=True),
    SweepRule(what="ended sessions", delete=delete_ended),
    SweepRule(what="challenges for passkeys", delete=delete_expired_challenges),
    SweepRule(what="expired links to sign in", delete=delete_expired_links),
    SweepRule(what="attempts to sign in", delete=delete_old_attempts),
    SweepRule(what="old questions", delete=delete_old_executions, retention="questions"),
)
_NOT_KEPT = timedelta(0)


def list_kinds() -> list[str]:
    return [sweep.what for sweep in SWEEPS]


async def sweep(what: str, retention: Retention, *, batch: int | None = None) -> SweepResult:
    """Deletes rows of one kind, in the rule's batches unless given. Each batch is committed by itself, so that a step
    that dies keeps its progress. Raises `LookupError` for an unknown kind."""
    rule = _rule(what)
    batch = rule.batch if batch is None else batch
    age: timedelta = getattr(retention, rule.retention) if rule.retention else _NOT_KEPT
    removed = 0
    for _ in range(_BATCHES):
        async with nullcontext() if rule.commits else transaction():
            gone = await rule.delete(batch, age)
            if gone:
                await append(Action.RECORDS_SWEEP, ("records", "swept"), changes={what: (gone, 0)})
        removed += gone
        if gone < batch:
            return SweepResult(removed=removed, more=False)
    return SweepResult(removed=removed, more=True)


def _rule(what: str) -> SweepRule:
    for rule in SWEEPS:
        if rule.what == what:
            return rule
    raise LookupError(f"nothing is known of {what}")
