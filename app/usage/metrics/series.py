"""Reading what was sampled of one database: points in steps, and what of the time is unknown."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.store.planning import planned_once
from app.store.session import fetch_one
from app.usage.metrics.rollups import FIVE_MINUTES, HOURS, SAMPLES, Resolution

_COLUMNS = "at, storage_bytes, connections, transactions, rows_read, rows_written, cache_hits, cache_reads"
# What is not summed up yet comes from the shorter steps, in the same look.
_ROLLED = "(SELECT rolled_until FROM metric_rollups WHERE seconds = {seconds})"
_FIVE = _ROLLED.format(seconds=FIVE_MINUTES.seconds)
_HOUR = _ROLLED.format(seconds=HOURS.seconds)
_OF = "database_id = d.id AND at >= $4::timestamptz AND at < $5::timestamptz"
_FROM_SAMPLES = f"SELECT {_COLUMNS} FROM metric_samples WHERE {_OF}"  # noqa: S608  our own words
_FROM_FIVE_MINUTES = f"SELECT {_COLUMNS} FROM metric_five_minutes WHERE {_OF}"  # noqa: S608
_FROM_HOURS = f"SELECT {_COLUMNS} FROM metric_hours WHERE {_OF}"  # noqa: S608
_AFTER_FIVE_MINUTES = f"{_FROM_SAMPLES} AND at >= {_FIVE}"
_AFTER_HOURS = f"{_FROM_FIVE_MINUTES} AND at >= {_HOUR} UNION ALL {_AFTER_FIVE_MINUTES}"
_SUMMED = """
SELECT date_bin($3::interval, at, 'epoch') AS at, max(storage_bytes) AS storage_bytes,
       max(connections) AS connections, sum(transactions)::bigint AS transactions,
       sum(rows_read)::bigint AS rows_read, sum(rows_written)::bigint AS rows_written,
       sum(cache_hits::float8) / nullif(sum(cache_hits::float8) + sum(cache_reads::float8), 0) AS cache_hit_ratio
FROM ({rows}) r GROUP BY 1
"""
# Rows that are kept in these steps are points as they are: to sum up each alone would take longer than to read it.
_KEPT = """
SELECT at, storage_bytes, connections, transactions, rows_read, rows_written,
       cache_hits::float8 / nullif(cache_hits::float8 + cache_reads, 0) AS cache_hit_ratio
FROM ({rows}) r
UNION ALL
"""
_READ = """
SELECT r.first_at, r.read_at, r.broken, r.transactions IS NOT NULL AS counts_transactions,
       r.rows_read IS NOT NULL AS counts_rows, r.cache_hits IS NOT NULL AS counts_pages, s.*, g.*
FROM databases d LEFT JOIN metric_readings r ON r.database_id = d.id
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(at), '{{}}') AS at, coalesce(array_agg(storage_bytes), '{{}}') AS storage_bytes,
           coalesce(array_agg(connections), '{{}}') AS connections,
           coalesce(array_agg(transactions), '{{}}') AS transactions,
           coalesce(array_agg(rows_read), '{{}}') AS rows_read,
           coalesce(array_agg(rows_written), '{{}}') AS rows_written,
           coalesce(array_agg(cache_hit_ratio), '{{}}') AS cache_hit_ratio
    FROM ({points} ORDER BY at) s
) s
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(lower(g)), '{{}}') AS gaps_since, coalesce(array_agg(upper(g)), '{{}}') AS gaps_until
    FROM unnest((
        SELECT range_agg(tstzrange(since, until)) FROM metric_gaps
        WHERE database_id = d.id AND until > $4::timestamptz AND since < $5::timestamptz
    )) AS g
) g
WHERE d.uuid = $1::uuid AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'
"""


def _reading(summed: str, kept: str | None = None) -> str:
    points = _SUMMED.format(rows=summed)
    return planned_once(_READ.format(points=points if kept is None else _KEPT.format(rows=kept) + points))


_IN_THEIR_STEPS = {
    FIVE_MINUTES.seconds: _reading(_AFTER_FIVE_MINUTES, kept=_FROM_FIVE_MINUTES),
    HOURS.seconds: _reading(_AFTER_HOURS, kept=_FROM_HOURS),
}
"""The statements for steps that are as long as those of a table, by seconds."""
_IN_LONGER_STEPS = {
    SAMPLES.seconds: _reading(_FROM_SAMPLES),
    FIVE_MINUTES.seconds: _reading(f"{_FROM_FIVE_MINUTES} UNION ALL {_AFTER_FIVE_MINUTES}"),
    HOURS.seconds: _reading(f"{_FROM_HOURS} UNION ALL {_AFTER_HOURS}"),
}
"""The statements for longer steps, by the seconds of the table's own."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a database in some time."""

    first_at: datetime | None
    """When the first sample was taken; None where there is none."""
    read_at: datetime | None
    """When the newest sample was taken."""
    broken: bool | None
    """What comes after the newest is not compared with it."""
    counts_transactions: bool
    """The server counts them, as the newest sample says."""
    counts_rows: bool
    counts_pages: bool
    at: list[datetime]
    """The beginnings of the steps in which there was a sample; the values in them follow, None where not known."""
    storage_bytes: list[int | None]
    connections: list[int | None]
    transactions: list[int | None]
    rows_read: list[int | None]
    rows_written: list[int | None]
    cache_hit_ratio: list[float | None]
    gaps_since: list[datetime]
    """The gaps between samples that can't be compared, in the order of time; gaps that follow each other are one."""
    gaps_until: list[datetime]


async def read(
    database: UUID, team_ids: list[int], resolution: Resolution, seconds: int, since: datetime, until: datetime
) -> Series | None:
    """Reads the samples taken from `since` on and before `until`, where they are kept in this resolution: the highest
    value of each gauge, the sum of each counter, in steps of so many seconds. None unless the database is one of these
    teams' and not deleted. It is one statement, because a request costs little more than its round trip."""
    statement = _IN_THEIR_STEPS.get(seconds) or _IN_LONGER_STEPS[resolution.seconds]
    return await fetch_one(Series, statement, database, team_ids, timedelta(seconds=seconds), since, until)
