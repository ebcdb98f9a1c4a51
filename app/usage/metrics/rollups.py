"""Sums of samples in longer steps: five minutes, an hour.

A step is summed up once, when no sample of it can come any more: a process that records shares the lock on the row that
says until when that is done, and one that sums up holds it alone. Both commit with their rows, so that each sum is of
all that was taken.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from app.store import partitions
from app.store.partitions import PartitionedTable
from app.store.session import execute, fetch_all, fetch_value, transaction
from app.store.tables.partitioned import METRIC_FIVE_MINUTES, METRIC_GAPS, METRIC_HOURS, METRIC_SAMPLES

SETTLED = timedelta(minutes=3)
"""After this time a sample is no longer on its way: a measurement takes a minute at most."""
_MOST_STEPS = 60
"""The most steps that are summed up in one transaction: the next one goes on."""
_LONGEST_DOWNTIME = timedelta(days=2)
"""What was not summed up before a longer downtime is lost with its samples."""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are kept for a while, each for a step of so many seconds; 0 for single samples."""

    seconds: int
    retention: timedelta
    table: PartitionedTable


SAMPLES = Resolution(seconds=0, retention=timedelta(days=1), table=METRIC_SAMPLES)
FIVE_MINUTES = Resolution(seconds=300, retention=timedelta(days=7), table=METRIC_FIVE_MINUTES)
HOURS = Resolution(seconds=3600, retention=timedelta(days=60), table=METRIC_HOURS)
RESOLUTIONS = (SAMPLES, FIVE_MINUTES, HOURS)

_SUM = """
INSERT INTO {into} (database_id, at, storage_bytes, connections, transactions, rows_read, rows_written,
                    cache_hits, cache_reads)
SELECT database_id, date_bin($1, at, 'epoch'),
       max(storage_bytes), max(connections),
       sum(transactions), sum(rows_read), sum(rows_written), sum(cache_hits), sum(cache_reads)
FROM {source} WHERE at >= $2 AND at < $3 GROUP BY 1, 2
ON CONFLICT (database_id, at) DO NOTHING
"""
_SUMS = (
    (FIVE_MINUTES, _SUM.format(into="metric_five_minutes", source="metric_samples")),
    (HOURS, _SUM.format(into="metric_hours", source="metric_five_minutes")),
)


async def takes(at: datetime) -> bool:
    """Whether a sample of that moment may still be written, until the end of the transaction."""
    rolled = await fetch_value(
        datetime, "SELECT rolled_until FROM metric_rollups WHERE seconds = $1 FOR SHARE", FIVE_MINUTES.seconds
    )
    return rolled is not None and rolled <= at


class _Rolled(msgspec.Struct, frozen=True):
    seconds: int
    rolled_until: datetime


async def prepare(at: datetime) -> None:
    """Makes the partitions for samples and sums of that day and the next, and remembers where the sums begin. Sums may
    be of earlier days; a sample is of that moment, and the partitions of samples before it are about to be dropped."""
    until = at + timedelta(days=1)
    await partitions.ensure(METRIC_SAMPLES, at, until)
    for table in (METRIC_FIVE_MINUTES, METRIC_HOURS, METRIC_GAPS):
        await partitions.ensure(table, at - _LONGEST_DOWNTIME, until)
    await execute(
        "INSERT INTO metric_rollups (seconds, rolled_until)"
        " SELECT s, date_bin(make_interval(secs => s), $2, 'epoch') FROM unnest($1::integer[]) AS s"
        " ON CONFLICT (seconds) DO NOTHING",
        [one.seconds for one, _ in _SUMS],
        at,
    )


async def roll_up(at: datetime) -> int:
    """Sums up all that is settled at that moment; returns how many rows that made."""
    made = 0
    settled = at - SETTLED
    async with transaction():
        for resolution, statement in _SUMS:
            rolled = await fetch_value(
                datetime, "SELECT rolled_until FROM metric_rollups WHERE seconds = $1 FOR UPDATE", resolution.seconds
            )
            if rolled is None:
                break
            step = timedelta(seconds=resolution.seconds)
            rolled = max(rolled, begin_of(at - _LONGEST_DOWNTIME, 3600))
            until = min(begin_of(settled, resolution.seconds), rolled + _MOST_STEPS * step)
            if until > rolled:
                made += await execute(statement, step, rolled, until)
                await execute(
                    "UPDATE metric_rollups SET rolled_until = $2 WHERE seconds = $1", resolution.seconds, until
                )
                rolled = until
            # Sums of sums: those of the longer step wait for the shorter.
            settled = rolled
    return made


async def rolled_until() -> dict[int, datetime]:
    """Until when samples are summed up, by the step's seconds."""
    found = await fetch_all(_Rolled, "SELECT seconds, rolled_until FROM metric_rollups")
    return {one.seconds: one.rolled_until for one in found}


def begin_of(moment: datetime, seconds: int) -> datetime:
    """The beginning of the step that has the moment."""
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)
