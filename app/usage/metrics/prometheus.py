"""The newest metrics of a team's databases in Prometheus' text format, version 0.0.4, which every scraper reads.

Counters are the sums of what was counted since a database's first sample: no restart and no move makes them less. What
is stale is left out, so that a graph shows a gap; when the newest sample was taken is always there.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from prometheus_client import Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from app.store.session import fetch_all

MEDIA_TYPE = "text/plain"
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
MOST_DATABASES = 5_000
"""The most databases on one page, the oldest first; the page also says how many are left out."""
_LABELS = ("database", "uuid", "db_type")
_VALUES: tuple[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, str], ...] = (
    (GaugeMetricFamily, "storage_bytes", "headwater_database_storage_bytes", "Bytes on the server's disk."),
    (GaugeMetricFamily, "connections", "headwater_database_connections", "Open sessions."),
    (CounterMetricFamily, "transactions", "headwater_database_transactions", "Transactions that ended."),
    (CounterMetricFamily, "rows_read", "headwater_database_rows_read", "Rows that statements looked at."),
    (CounterMetricFamily, "rows_written", "headwater_database_rows_written", "Rows inserted, updated and deleted."),
    (CounterMetricFamily, "cache_hits", "headwater_database_cache_hits", "Pages that were in the server's memory."),
    (CounterMetricFamily, "cache_reads", "headwater_database_cache_reads", "Pages that were not."),
)


class Newest(msgspec.Struct, frozen=True, kw_only=True):
    """A database with its newest sample, all None before the first."""

    uuid: UUID
    name: str
    engine: str
    read_at: datetime | None
    broken: bool | None
    storage_bytes: int | None
    connections: int | None
    transactions: int | None
    rows_read: int | None
    rows_written: int | None
    cache_hits: int | None
    cache_reads: int | None
    databases: int
    """How many the team has in all."""


_OF_TEAM = """
FROM databases
WHERE team_id = $1 AND status <> 'deleted' AND status IN ('active', 'paused') AND ($2::uuid[] IS NULL OR uuid = any($2))
"""
# Chosen, and counted, before the readings are read.
_NEWEST = f"""
SELECT d.uuid, d.name, d.engine, r.read_at, r.broken, r.storage_bytes, r.connections,
       r.total_transactions AS transactions, r.total_rows_read AS rows_read, r.total_rows_written AS rows_written,
       r.total_cache_hits AS cache_hits, r.total_cache_reads AS cache_reads,
       (SELECT count(*) {_OF_TEAM}) AS databases
FROM (SELECT id, uuid, name, engine, position {_OF_TEAM} ORDER BY -position DESC LIMIT $3) d
LEFT JOIN metric_readings r ON r.database_id = d.id
ORDER BY d.position
"""  # noqa: S608 - our own words


async def newest(team_id: int, databases: Sequence[UUID] | None) -> list[Newest]:
    """The team's databases, or those of them that are among `databases`: the `MOST_DATABASES` oldest."""
    named = None if databases is None else list(databases)
    return await fetch_all(Newest, _NEWEST, team_id, named, MOST_DATABASES)


def render(found: Sequence[Newest], now: datetime, longest_gap: float) -> bytes:
    """The page of these databases. `longest_gap` is the number of seconds without a sample after which the newest one
    says nothing any more."""
    return generate_latest(_Page(found, now, longest_gap))


class _Page(Collector):
    def __init__(self, found: Sequence[Newest], now: datetime, longest_gap: float) -> None:
        self._found = found
        self._fresh = [
            one
            for one in found
            if one.read_at is not None and not one.broken and (now - one.read_at).total_seconds() <= longest_gap
        ]

    def collect(self) -> Iterable[Metric]:
        for family, field, name, help_text in _VALUES:
            metric = family(name, help_text, labels=_LABELS)
            for one in self._fresh:
                value = getattr(one, field)
                if value is not None:
                    metric.add_metric(_labels(one), value)
            yield metric
        sampled = GaugeMetricFamily(
            "headwater_database_sampled_timestamp_seconds", "When the newest sample was taken.", labels=_LABELS
        )
        for one in self._found:
            if one.read_at is not None:
                sampled.add_metric(_labels(one), one.read_at.timestamp())
        yield sampled
        left_out = self._found[0].databases - len(self._found) if self._found else 0
        yield GaugeMetricFamily("headwater_databases_left_out", "Databases beyond those on this page.", value=left_out)


def _labels(one: Newest) -> tuple[str, str, str]:
    return one.name, str(one.uuid), one.engine
