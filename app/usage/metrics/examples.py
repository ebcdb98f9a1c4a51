"""Examples for the API's description."""

from datetime import UTC, datetime, timedelta

from app.databases.examples import EXAMPLE_DATABASE
from app.usage.metrics.names import MetricName
from app.usage.metrics.prometheus import Newest, render
from app.usage.metrics.schemas import DatabaseMetrics, MetricSeries

_AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)

EXAMPLE_METRICS = DatabaseMetrics(
    series=[
        MetricSeries(
            name=MetricName.TRANSACTIONS,
            unit=MetricName.TRANSACTIONS.unit,
            points=[(_AT, 1204), (_AT + _MINUTE, 1188), (_AT + 4 * _MINUTE, 1211)],
        ),
        MetricSeries(
            name=MetricName.CACHE_HIT_RATIO,
            unit=MetricName.CACHE_HIT_RATIO.unit,
            points=[(_AT, 0.998), (_AT + _MINUTE, 0.997), (_AT + 4 * _MINUTE, 0.999)],
        ),
    ],
    step=60,
    sampled_every=60.0,
    stale_seconds=21.4,
    gaps=[(_AT + timedelta(seconds=61), _AT + timedelta(seconds=181))],
    uncounted=[],
)
EXAMPLE_PAGE = render(
    [
        Newest(
            uuid=EXAMPLE_DATABASE.uuid,
            name=EXAMPLE_DATABASE.name,
            engine="postgres",
            read_at=_AT,
            broken=False,
            storage_bytes=8_123_904,
            connections=3,
            transactions=48_213,
            rows_read=991_204,
            rows_written=20_118,
            cache_hits=611_840,
            cache_reads=412,
            databases=1,
        )
    ],
    _AT,
    60,
).decode()
