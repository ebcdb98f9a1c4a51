"""The shape of metrics on the wire."""

from typing import Literal

from msgspec import Struct

from app.core.clock import Moment
from app.usage.metrics.names import MetricName

Point = tuple[Moment, int | float]
"""When a step begins, and the value in it."""


class MetricSeries(Struct, kw_only=True):
    name: MetricName
    unit: str
    points: list[Point]
    """In the order of time. A step of which nothing is known has none."""


class DatabaseMetrics(Struct, kw_only=True):
    """Gauges are the highest that was seen in a step; counters are what happened in it. What happened in a gap is
    unknown, and in no point."""

    object: Literal["database_metrics"] = "database_metrics"
    series: list[MetricSeries]
    step: int
    """Seconds."""
    sampled_every: float
    """Seconds."""
    stale_seconds: float | None
    """How old the newest sample is; null where there is none."""
    gaps: list[tuple[Moment, Moment]]
    """In the order of time."""
    uncounted: list[MetricName]
    """What the database's server doesn't count by database, or is not configured to count."""
