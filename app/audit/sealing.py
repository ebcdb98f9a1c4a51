"""Sealing events, after their commit, in an order that no later commit changes. Writers wait for nobody.

Each event has the number of the batch that was open when it was inserted. A batch is closed by counting up. A
transaction that has read the number before had its own number by then, so the batch is complete when all transactions
up to that moment have ended.
"""

import asyncio
from datetime import datetime
from time import monotonic

from app.audit.chain import Seal, new_seal
from app.audit.records import COLUMNS, EventRecord
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar, transaction
from app.store.tables.audit import AuditSeal

MOST_EVENTS = 5000
"""How many events one seal covers at most."""
_POLL_SECONDS = 0.02
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('headwater audit seals', 0))"
_SEALS = f"SELECT {columns_of(AuditSeal, 's')} FROM audit_seals s"  # noqa: S608 - our own words
_NEWEST = f"{_SEALS} ORDER BY s.id DESC LIMIT 1"
_UNSEALED = """
SELECT FROM audit_events
WHERE (batch, id) > (SELECT coalesce(max(batch), -1), coalesce(max(last_id), -1) FROM (
    SELECT batch, last_id FROM audit_seals ORDER BY id DESC LIMIT 1) newest)
LIMIT 1
"""
_NEXT = f"""
SELECT {COLUMNS} FROM audit_events e WHERE (e.batch, e.id) > ($1, $2) AND e.batch < $3 ORDER BY e.batch, e.id LIMIT $4
"""  # noqa: S608 - our own words


async def newest_seal() -> Seal | None:
    return await fetch_one(Seal, _NEWEST)


async def list_seals(*, after: int | None, limit: int) -> list[Seal]:
    """The seals, newest first, from the one that follows `after` on."""
    sql = f"{_SEALS} WHERE $1::bigint IS NULL OR s.id < $1 ORDER BY s.id DESC LIMIT $2"
    return await fetch_all(Seal, sql, after, limit)


async def seal_events(*, patience_seconds: float = 20.0, most: int = MOST_EVENTS) -> int:
    """Seals all events that were committed before the call; returns how many. Any number of processes may do so at
    once. Transactions that were under way are waited for; the rest is left to the next call when one of them takes
    longer."""
    if not await fetch_exists(_UNSEALED):
        return 0
    open_batch = await fetch_scalar(int, "SELECT nextval('audit_batches')")
    if not await _complete(patience_seconds):
        return 0
    sealed = 0
    while (count := await _seal_next(open_batch, most)) > 0:
        sealed += count
        if count < most:
            break
    return sealed


async def _complete(patience_seconds: float) -> bool:
    """Whether all transactions that had a number before now have ended."""
    now = await fetch_scalar(int, "SELECT pg_current_xact_id()::text::bigint")
    until = monotonic() + patience_seconds
    while await fetch_scalar(int, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint") <= now:
        if monotonic() > until:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


async def _seal_next(open_batch: int, most: int) -> int:
    """Makes one more seal over events of closed batches, and returns how many these are."""
    async with transaction():
        await execute(_LOCK)
        previous = await newest_seal()
        after = (-1, -1) if previous is None else (previous.batch, previous.last_id)
        events = await fetch_all(EventRecord, _NEXT, *after, open_batch, most)
        if not events:
            return 0
        at = await fetch_scalar(datetime, "SELECT now()")
        seal, leaves = new_seal(previous, at, events)
        await execute(
            """
            INSERT INTO audit_seals (id, at, batch, last_id, events, leaves_hash, previous, hash)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """,
            seal.id,
            seal.at,
            seal.batch,
            seal.last_id,
            seal.events,
            seal.leaves_hash,
            seal.previous,
            seal.hash,
        )
        await execute("INSERT INTO audit_leaves (id, at, leaves) VALUES ($1, $2, $3)", seal.id, seal.at, leaves)
        return len(events)
