"""The Temporal SDK's own metrics on our page: workflows by outcome, waiting times, pollers, failed calls.

The SDK could serve a page itself, but on another port.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

import msgspec
from prometheus_client import Metric
from prometheus_client.utils import floatToGoString
from temporalio.runtime import (
    BUFFERED_METRIC_KIND_COUNTER,
    BUFFERED_METRIC_KIND_GAUGE,
    BufferedMetricUpdate,
    MetricBuffer,
    MetricBufferDurationFormat,
    Runtime,
    TelemetryConfig,
)

from app.core.temporal import CORE_LOG

_BUFFER = 50_000
_DRAIN_SECONDS = 1.0
"""Updates that don't fit into the buffer between two drains are lost."""
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600)
Labels = tuple[tuple[str, str], ...]


class _Distribution(msgspec.Struct):
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0

    def add(self, value: float) -> None:
        self.counts[bisect_left(_BOUNDS, value)] += 1
        self.total += value


class TemporalMetrics:
    """Give `runtime` to the client, and run `drain` beside it."""

    def __init__(self) -> None:
        self._buffer = MetricBuffer(_BUFFER, MetricBufferDurationFormat.SECONDS)
        self.runtime = Runtime(telemetry=TelemetryConfig(metrics=self._buffer, logging=CORE_LOG))
        self._help: dict[str, str] = {}
        self._counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._gauges: dict[str, dict[Labels, float]] = defaultdict(dict)
        self._histograms: dict[str, dict[Labels, _Distribution]] = defaultdict(lambda: defaultdict(_Distribution))

    async def drain(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(_DRAIN_SECONDS)
            self._take()

    async def collect(self) -> Sequence[Metric]:
        """The SDK's metrics since the start of the process."""
        self._take()
        counters = [self._simple(name, "counter", "_total", values) for name, values in self._counters.items()]
        gauges = [self._simple(name, "gauge", "", values) for name, values in self._gauges.items()]
        histograms = [self._histogram(name, values) for name, values in self._histograms.items()]
        return [*counters, *gauges, *histograms]

    def _take(self) -> None:
        for update in self._buffer.retrieve_updates():
            self._add(update)

    def _add(self, update: BufferedMetricUpdate) -> None:
        metric = update.metric
        labels = tuple(sorted((name, str(value)) for name, value in update.attributes.items()))
        name = f"{metric.name}_seconds" if metric.unit == "s" else metric.name
        self._help[name] = metric.description or "As the Temporal SDK reports it."
        if metric.kind == BUFFERED_METRIC_KIND_COUNTER:
            self._counters[name][labels] += update.value
        elif metric.kind == BUFFERED_METRIC_KIND_GAUGE:
            self._gauges[name][labels] = update.value
        else:
            self._histograms[name][labels].add(update.value)

    def _simple(self, name: str, kind: str, suffix: str, values: dict[Labels, float]) -> Metric:
        metric = Metric(name, self._help[name], kind)
        for labels, value in values.items():
            metric.add_sample(name + suffix, dict(labels), value)
        return metric

    def _histogram(self, name: str, values: dict[Labels, _Distribution]) -> Metric:
        metric = Metric(name, self._help[name], "histogram")
        bounds = [*map(floatToGoString, _BOUNDS), "+Inf"]
        for labels, found in values.items():
            for bound, count in zip(bounds, accumulate(found.counts), strict=True):
                metric.add_sample(f"{name}_bucket", {**dict(labels), "le": bound}, count)
            metric.add_sample(f"{name}_count", dict(labels), sum(found.counts))
            metric.add_sample(f"{name}_sum", dict(labels), found.total)
        return metric
