"""Answering what clients ask of metrics."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from app.core.errors import require_found
from app.metrics import series
from app.metrics.asking import Asked
from app.metrics.names import MetricName
from app.metrics.schemas import DatabaseMetrics, MetricSeries
from app.metrics.series import Gap, NewestSample, Steps

_MISSED = 3.0
"""So many intervals without a sample, and some seconds, are a gap."""
_SECONDS = 10.0


def longest_gap(interval: float) -> float:
    """The longest time, in seconds, for which one sample stands: one may be missed."""
    return _MISSED * interval + _SECONDS


async def metrics_of(
    database: UUID, team_ids: list[int], asked: Asked, now: datetime, interval: float
) -> DatabaseMetrics:
    """Of one of these teams' databases. `interval` is how many seconds lie between samples. Raises `NotFound`."""
    seen = require_found(await series.find_owned(database, team_ids), "database")
    found = await series.steps(seen.id, asked.resolution, asked.step, asked.since, asked.until)
    known = await series.gaps(seen.id, asked.since, asked.until)
    return DatabaseMetrics(
        series=[_series(name, found) for name in asked.names],
        step=asked.step,
        sampled_every=interval,
        stale_seconds=None if seen.read_at is None else round(max((now - seen.read_at).total_seconds(), 0.0), 3),
        gaps=list(_gaps(asked, known, seen, now, timedelta(seconds=longest_gap(interval)))),
        uncounted=[] if seen.read_at is None else [name for name in asked.names if _uncounted(name, seen)],
    )


def _series(name: MetricName, found: Steps) -> MetricSeries:
    values: list[int | float | None] = getattr(found, name.value)
    points = [(at, value) for at, value in zip(found.at, values, strict=True) if value is not None]
    return MetricSeries(name=name, unit=name.unit, points=points)


def _gaps(
    asked: Asked, known: list[Gap], seen: NewestSample, now: datetime, longest: timedelta
) -> Iterator[tuple[datetime, datetime]]:
    """Those within what was asked for: before the first sample, between samples, and since the newest one."""
    end = min(asked.until, now)
    bounds = [(gap.since, gap.until) for gap in known]
    if seen.first_at is None or seen.read_at is None:
        bounds = [(asked.since, end)]
    else:
        bounds.insert(0, (asked.since, seen.first_at))
        if seen.broken or now - seen.read_at > longest:
            bounds.append((seen.read_at, end))
    for since, until in bounds:
        if max(since, asked.since) < min(until, end):
            yield max(since, asked.since), min(until, end)


def _uncounted(name: MetricName, seen: NewestSample) -> bool:
    counter = "cache_hits" if name is MetricName.CACHE_HIT_RATIO else name.value
    return name not in (MetricName.STORAGE_BYTES, MetricName.CONNECTIONS) and getattr(seen, counter) is None
