"""Reading what was sampled of one database: points in steps, and what of the time is unknown."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.metrics.rollups import FIVE_MINUTES, HOURS, SAMPLES, Resolution
from app.store.session import fetch_all, fetch_one

_COLUMNS = "at, storage_bytes, connections, transactions, rows_read, rows_written, cache_hits, cache_reads"
# What is not summed up yet comes from the shorter steps, in the same look.
_ROLLED = "(SELECT rolled_until FROM metric_rollups WHERE seconds = {seconds})"
_FIVE = _ROLLED.format(seconds=FIVE_MINUTES.seconds)
_HOUR = _ROLLED.format(seconds=HOURS.seconds)
_OF = "database_id = $1 AND at >= $3 AND at < $4"
_FROM_SAMPLES = f"SELECT {_COLUMNS} FROM metric_samples WHERE {_OF}"  # noqa: S608  our own words
_FROM_FIVE_MINUTES = f"""
SELECT {_COLUMNS} FROM metric_five_minutes WHERE {_OF} UNION ALL {_FROM_SAMPLES} AND at >= {_FIVE}
"""  # noqa: S608
_FROM_HOURS = f"""
SELECT {_COLUMNS} FROM metric_hours WHERE {_OF}
UNION ALL SELECT {_COLUMNS} FROM metric_five_minutes WHERE {_OF} AND at >= {_HOUR}
UNION ALL {_FROM_SAMPLES} AND at >= {_FIVE}
"""  # noqa: S608
_SERIES = """
SELECT coalesce(array_agg(at), '{{}}') AS at, coalesce(array_agg(storage_bytes), '{{}}') AS storage_bytes,
       coalesce(array_agg(connections), '{{}}') AS connections,
       coalesce(array_agg(transactions), '{{}}') AS transactions,
       coalesce(array_agg(rows_read), '{{}}') AS rows_read, coalesce(array_agg(rows_written), '{{}}') AS rows_written,
       coalesce(array_agg(cache_hit_ratio), '{{}}') AS cache_hit_ratio
FROM (
    SELECT date_bin($2, at, 'epoch') AS at, max(storage_bytes) AS storage_bytes, max(connections) AS connections,
           sum(transactions)::bigint AS transactions, sum(rows_read)::bigint AS rows_read,
           sum(rows_written)::bigint AS rows_written,
           (sum(cache_hits) / nullif(sum(cache_hits) + sum(cache_reads), 0))::float8 AS cache_hit_ratio
    FROM ({rows}) r GROUP BY 1 ORDER BY 1
) s
"""
_STATEMENTS = {
    SAMPLES.seconds: _SERIES.format(rows=_FROM_SAMPLES),
    FIVE_MINUTES.seconds: _SERIES.format(rows=_FROM_FIVE_MINUTES),
    HOURS.seconds: _SERIES.format(rows=_FROM_HOURS),
}


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """The beginnings of the steps in which there was a sample, and of each the value by the metric's name; None where
    nothing is known."""

    at: list[datetime]
    storage_bytes: list[int | None]
    connections: list[int | None]
    transactions: list[int | None]
    rows_read: list[int | None]
    rows_written: list[int | None]
    cache_hit_ratio: list[float | None]


async def steps(database_id: int, resolution: Resolution, seconds: int, since: datetime, until: datetime) -> Steps:
    """Of samples taken from `since` on and before `until`, which are read where they are kept in this resolution: the
    highest of each gauge, the sum of each counter."""
    statement, step = _STATEMENTS[resolution.seconds], timedelta(seconds=seconds)
    found = await fetch_one(Steps, statement, database_id, step, since, until)
    assert found is not None, "an aggregate always has a row"
    return found


class NewestSample(msgspec.Struct, frozen=True, kw_only=True):
    """When a database was sampled, and what its server counts; None before the first sample."""

    id: int
    first_at: datetime | None
    read_at: datetime | None
    broken: bool | None
    transactions: int | None
    rows_read: int | None
    rows_written: int | None
    cache_hits: int | None


async def find_owned(database: UUID, team_ids: list[int]) -> NewestSample | None:
    """One of these teams' databases, unless it is deleted."""
    return await fetch_one(
        NewestSample,
        """
        SELECT d.id, r.first_at, r.read_at, r.broken, r.transactions, r.rows_read, r.rows_written, r.cache_hits
        FROM databases d LEFT JOIN metric_readings r ON r.database_id = d.id
        WHERE d.uuid = $1 AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'
        """,
        database,
        team_ids,
    )


class Gap(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime


async def gaps(database_id: int, since: datetime, until: datetime) -> list[Gap]:
    """Between samples that can't be compared, in the order of time; those that follow each other are one."""
    return await fetch_all(
        Gap,
        """
        SELECT lower(g) AS since, upper(g) AS until FROM unnest((
            SELECT range_agg(tstzrange(since, until)) FROM metric_gaps
            WHERE database_id = $1 AND until > $2 AND since < $3
        )) AS g ORDER BY 1
        """,
        database_id,
        since,
        until,
    )
