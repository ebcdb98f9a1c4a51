"""`headwater databases metrics`: what one database used over time."""

from collections import defaultdict
from datetime import datetime
from typing import Any

import msgspec
import rich_click as click

from app.cli.installation import settings, store
from app.cli.output import shown
from app.cli.tables import SHOWN, Rows
from app.core.clock import utc_now
from app.core.errors import NotFound
from app.databases import inventory
from app.usage.metrics import asking, service
from app.usage.metrics.names import MetricName
from app.usage.metrics.schemas import DatabaseMetrics


class MetricsLine(msgspec.Struct, frozen=True, kw_only=True):
    """One step, the values that are known of it."""

    at: datetime
    connections: int | float | None = None
    storage_bytes: int | float | None = None
    transactions: int | float | None = None
    rows_read: int | float | None = None
    rows_written: int | float | None = None
    cache_hit_ratio: int | float | None = None


@click.command("metrics")
@click.argument("database", metavar="DATABASE")
@click.option(
    "--name",
    "names",
    type=click.Choice([name.value for name in MetricName]),
    multiple=True,
    help="Only this; may be repeated.",
)
@click.option("--from", "since", metavar="TIME", help="A time with its offset; a day before --to unless given.")
@click.option("--to", "until", metavar="TIME", help="Now unless given.")
@click.option("--step", type=int, default=asking.AUTOMATIC, help="Seconds of a line; chosen by the range unless given.")
@shown
async def metrics(database: str, names: tuple[str, ...], since: str | None, until: str | None, step: int) -> Rows:
    """Show what one database used, the newest step first. Gauges are the highest in a step, counters what happened in
    it; what is not known, as in a gap, has no value."""
    now = utc_now()
    asked = asking.read(",".join(names) or None, since, until, step, now)
    async with store():
        found = await inventory.get_details(await inventory.resolve(database))
        if found.team_id is None:
            raise NotFound("database")
        interval = settings().quota_interval_seconds
        measured = await service.metrics_of(found.uuid, [found.team_id], asked, now, interval)
    rows = _lines(measured)
    return Rows(rows=rows, total=len(rows), noun="steps", note=_note(measured), max_rows=SHOWN)


def _lines(measured: DatabaseMetrics) -> list[MetricsLine]:
    steps: defaultdict[datetime, dict[str, Any]] = defaultdict(dict)
    for series in measured.series:
        for at, value in series.points:
            steps[at][series.name.value] = value
    return [MetricsLine(at=at, **steps[at]) for at in sorted(steps, reverse=True)]


def _note(measured: DatabaseMetrics) -> str:
    parts = [f"of {measured.step} seconds each"]
    if measured.stale_seconds is not None:
        parts.append(f"the newest sample is {measured.stale_seconds:.0f} s old")
    if measured.gaps:
        parts.append(
            "nothing is known " + ", ".join(f"from {a:%m-%d %H:%M} to {b:%m-%d %H:%M}" for a, b in measured.gaps)
        )
    if measured.uncounted:
        parts.append(f"not counted there: {', '.join(measured.uncounted)}")
    return "; ".join(parts)
