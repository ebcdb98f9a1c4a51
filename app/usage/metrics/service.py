"""Answering what clients ask of metrics."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from app.core.errors import require_found
from app.usage.metrics import series
from app.usage.metrics.asking import Asked
from app.usage.metrics.names import MetricName
from app.usage.metrics.schemas import DatabaseMetrics, MetricSeries, Point
from app.usage.metrics.series import Series

_MISSED = 3.0
"""How many intervals without a sample, and some seconds, are a gap."""
_SECONDS = 10.0


def longest_gap(interval: float) -> float:
    """The longest time, in seconds, for which one sample stands: one may be missed."""
    return _MISSED * interval + _SECONDS


async def metrics_of(
    database: UUID, team_ids: list[int], asked: Asked, now: datetime, interval: float
) -> DatabaseMetrics:
    """The metrics of one of these teams' databases. `interval` is how many seconds lie between samples. Raises
    `NotFound`."""
    found = require_found(
        await series.read(database, team_ids, asked.resolution, asked.step, asked.since, asked.until), "database"
    )
    read_at = found.read_at
    return DatabaseMetrics(
        series=[_series(name, found) for name in asked.names],
        step=asked.step,
        sampled_every=interval,
        stale_seconds=None if read_at is None else round(max((now - read_at).total_seconds(), 0.0), 3),
        gaps=list(_gaps(asked, found, now, timedelta(seconds=longest_gap(interval)))),
        uncounted=[] if read_at is None else [name for name in asked.names if not _counted(name, found)],
    )


def _series(name: MetricName, found: Series) -> MetricSeries:
    known: zip[Point] = zip(found.at, getattr(found, name.value), strict=True)
    return MetricSeries(name=name, unit=name.unit, points=[point for point in known if point[1] is not None])


def _gaps(asked: Asked, found: Series, now: datetime, longest: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """The gaps within what was asked for: before the first sample, between samples, and since the newest one."""
    end = min(asked.until, now)
    bounds = list(zip(found.gaps_since, found.gaps_until, strict=True))
    if found.first_at is None or found.read_at is None:
        bounds = [(asked.since, end)]
    else:
        bounds.insert(0, (asked.since, found.first_at))
        if found.broken or now - found.read_at > longest:
            bounds.append((found.read_at, end))
    for since, until in bounds:
        if max(since, asked.since) < min(until, end):
            yield max(since, asked.since), min(until, end)


def _counted(name: MetricName, found: Series) -> bool:
    if name is MetricName.TRANSACTIONS:
        return found.counts_transactions
    if name in (MetricName.ROWS_READ, MetricName.ROWS_WRITTEN):
        return found.counts_rows
    return found.counts_pages or name is not MetricName.CACHE_HIT_RATIO
