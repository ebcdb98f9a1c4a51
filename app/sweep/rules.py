"""What has had its time: for each kind of row, which ones go. One statement removes one batch."""

import msgspec


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    """In words, for the operator."""
    sql: str
    """Deletes at most `$1` rows, the oldest first, and passes over those that somebody else holds."""


SWEEPS = (
    Sweep(
        what="expired idempotency keys",
        # One whose request still runs stays: its answer is about to be written.
        sql="""
        DELETE FROM idempotency_keys WHERE id IN (
            SELECT id FROM idempotency_keys
            WHERE expires_at <= now() AND (response_status IS NOT NULL OR locked_until IS NULL OR locked_until <= now())
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
)
