"""Writing samples: what databases have, and what their counters grew by since the sample before.

A database's newest reading is compared with the one before it, and replaced, in the transaction that writes the sample:
nothing is counted twice and nothing is lost, whenever a process dies and however often a step is repeated.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from app.engines.base import Counters
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, transaction
from app.store.tables.metrics import MetricReading
from app.usage.metrics import rollups
from app.usage.metrics.differences import COUNTS, NOTHING_KNOWN, Counts, Look, add, between


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found of a database."""

    database_id: int
    look: Look
    connections: int
    storage_bytes: int | None
    """None where it wasn't measured."""


class _Before(msgspec.Struct, frozen=True, kw_only=True):
    database_id: int
    first_at: datetime
    read_at: datetime
    broken: bool
    place: str
    began: str
    witness: list[int]
    storage_bytes: int | None
    transactions: int | None
    rows_read: int | None
    rows_written: int | None
    cache_hits: int | None
    cache_reads: int | None
    total_transactions: int | None
    total_rows_read: int | None
    total_rows_written: int | None
    total_cache_hits: int | None
    total_cache_reads: int | None

    @property
    def look(self) -> Look:
        counters = Counters(
            began=self.began, witness=tuple(self.witness), **{name: getattr(self, name) for name in COUNTS}
        )
        return Look(place=self.place, counters=counters)

    @property
    def totals(self) -> Counts:
        return Counts(**{name: getattr(self, f"total_{name}") for name in COUNTS})


class _Sample(msgspec.Struct, frozen=True, kw_only=True):
    taken: Taken
    first_at: datetime
    storage_bytes: int | None
    """As it was last measured."""
    counts: Counts
    totals: Counts
    gap_since: datetime | None


# In one order, so that of two that record the same databases one waits for the other, and never both.
_BEFORE = f"""
SELECT {columns_of(MetricReading, "r")} FROM metric_readings r
WHERE database_id = any($1::bigint[]) ORDER BY database_id FOR UPDATE
"""  # noqa: S608 - our own words


async def record(taken: Sequence[Taken], at: datetime, *, longest: timedelta, stopped: Sequence[int] = ()) -> int:
    """Keeps a sample of each of these databases, all taken at that moment; returns how many were new. More time than
    `longest` between two samples is a gap, and so is the time between two that can't be compared. The samples of the
    `stopped` databases are not compared with what comes next. A sample that is not newer than the last changes nothing.
    The partitions have to be there."""
    ids = [one.database_id for one in taken]
    async with transaction():
        if not await rollups.takes(at):
            return 0
        found = await fetch_all(_Before, _BEFORE, [*ids, *stopped])
        before = {one.database_id: one for one in found}
        samples = [
            _sample(one, before.get(one.database_id), at, longest)
            for one in taken
            if one.database_id not in before or before[one.database_id].read_at < at
        ]
        if samples:
            await _write(samples, at)
        await interrupt(stopped)
    return len(samples)


def _sample(taken: Taken, before: _Before | None, at: datetime, longest: timedelta) -> _Sample:
    if before is None:
        return _Sample(
            taken=taken,
            first_at=at,
            storage_bytes=taken.storage_bytes,
            counts=NOTHING_KNOWN,
            totals=NOTHING_KNOWN,
            gap_since=None,
        )
    grown = None if before.broken else between(before.look, taken.look)
    whole = grown is not None and at - before.read_at <= longest
    return _Sample(
        taken=taken,
        first_at=before.first_at,
        storage_bytes=before.storage_bytes if taken.storage_bytes is None else taken.storage_bytes,
        counts=grown if whole and grown is not None else NOTHING_KNOWN,
        # What is known to have happened, though not when.
        totals=add(before.totals, grown or NOTHING_KNOWN),
        gap_since=None if whole else before.read_at,
    )


_SAMPLES = """
INSERT INTO metric_samples (database_id, at, storage_bytes, connections, transactions, rows_read, rows_written,
                            cache_hits, cache_reads)
SELECT s.database_id, $1, s.storage_bytes, s.connections, s.transactions, s.rows_read, s.rows_written,
       s.cache_hits, s.cache_reads
FROM unnest($2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[]) AS s (database_id, storage_bytes, connections, transactions, rows_read, rows_written,
                                cache_hits, cache_reads)
ON CONFLICT (database_id, at) DO NOTHING
"""
_GAPS = """
INSERT INTO metric_gaps (database_id, since, until)
SELECT g.database_id, g.since, $1 FROM unnest($2::bigint[], $3::timestamptz[]) AS g (database_id, since)
ON CONFLICT (database_id, until) DO NOTHING
"""
_READINGS = """
INSERT INTO metric_readings AS r (
    database_id, first_at, read_at, place, began, witness, storage_bytes, connections,
    transactions, rows_read, rows_written, cache_hits, cache_reads,
    total_transactions, total_rows_read, total_rows_written, total_cache_hits, total_cache_reads
)
SELECT s.database_id, s.first_at, $1, s.place, s.began, s.witness::bigint[], s.storage_bytes, s.connections,
       s.transactions, s.rows_read, s.rows_written, s.cache_hits, s.cache_reads,
       s.total_transactions, s.total_rows_read, s.total_rows_written, s.total_cache_hits, s.total_cache_reads
FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::integer[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
            $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[])
     AS s (database_id, first_at, place, began, witness, storage_bytes, connections,
           transactions, rows_read, rows_written, cache_hits, cache_reads,
           total_transactions, total_rows_read, total_rows_written, total_cache_hits, total_cache_reads)
JOIN databases d ON d.id = s.database_id
ON CONFLICT (database_id) DO UPDATE SET
    read_at = excluded.read_at, broken = false, place = excluded.place, began = excluded.began,
    witness = excluded.witness, storage_bytes = excluded.storage_bytes, connections = excluded.connections,
    transactions = excluded.transactions, rows_read = excluded.rows_read, rows_written = excluded.rows_written,
    cache_hits = excluded.cache_hits, cache_reads = excluded.cache_reads,
    total_transactions = excluded.total_transactions, total_rows_read = excluded.total_rows_read,
    total_rows_written = excluded.total_rows_written, total_cache_hits = excluded.total_cache_hits,
    total_cache_reads = excluded.total_cache_reads
WHERE r.read_at < excluded.read_at
"""


async def _write(samples: Sequence[_Sample], at: datetime) -> None:
    ids = [one.taken.database_id for one in samples]
    connections = [one.taken.connections for one in samples]
    grown = [[getattr(one.counts, name) for one in samples] for name in COUNTS]
    await execute(_SAMPLES, at, ids, [one.taken.storage_bytes for one in samples], connections, *grown)
    gaps = [one for one in samples if one.gap_since is not None]
    if gaps:
        await execute(_GAPS, at, [one.taken.database_id for one in gaps], [one.gap_since for one in gaps])
    counters = [one.taken.look.counters for one in samples]
    await execute(
        _READINGS,
        at,
        ids,
        [one.first_at for one in samples],
        [one.taken.look.place for one in samples],
        [one.began for one in counters],
        [f"{{{','.join(map(str, one.witness))}}}" for one in counters],
        [one.storage_bytes for one in samples],
        connections,
        *([getattr(one, name) for one in counters] for name in COUNTS),
        *([getattr(one.totals, name) for one in samples] for name in COUNTS),
    )


async def interrupt(databases: Sequence[int]) -> None:
    """Keeps what was sampled of these databases from being compared with what comes next: there is a gap."""
    if databases:
        await execute(
            "UPDATE metric_readings SET broken = true WHERE database_id = any($1::bigint[]) AND NOT broken",
            list(databases),
        )
