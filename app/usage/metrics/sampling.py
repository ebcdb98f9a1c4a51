"""Samples of databases, taken by the measuring of their hosts. Nothing that goes wrong with them keeps anything from
being measured: what is missing shows as a gap."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import asyncpg
import msgspec
import structlog

from app.core.clock import utc_now
from app.engines.base import Counters, EngineAdapter, EngineError, HostUnavailable
from app.store import partitions
from app.store.tables.partitioned import METRIC_GAPS
from app.usage.metrics import recording, rollups
from app.usage.metrics.differences import Look
from app.usage.metrics.recording import Taken

log = structlog.get_logger(__name__)


class Sampled(msgspec.Struct, frozen=True, kw_only=True):
    """A database that was measured, beside what its server counts."""

    database_id: int
    name: str
    running: bool
    """It is neither paused nor being restored. What isn't running has a gap."""
    connections: int
    storage_bytes: int | None
    """None where it wasn't measured this time."""


async def prepare(at: datetime) -> None:
    """Makes room for what is taken at that moment and after it."""
    try:
        await rollups.prepare(at)
    except asyncpg.PostgresError as error:
        log.error("metrics_unprepared", reason=str(error))


async def look(adapter: EngineAdapter, address: str, names: Sequence[str]) -> dict[str, Counters]:
    """What the host counts of these databases, by name. Raises `HostUnavailable`."""
    try:
        return await adapter.counters(names)
    except HostUnavailable:
        raise
    except EngineError as error:
        log.warning("counters_not_read", host=address, reason=str(error))
        return {}


async def keep(
    host_id: int, sampled: Sequence[Sampled], counters: Mapping[str, Counters], at: datetime, *, longest_gap: float
) -> int:
    """Records a sample of each database that runs and that the host said something of; returns how many."""
    taken = [
        Taken(
            database_id=one.database_id,
            look=Look(place=f"{host_id} {one.name}", counters=counters[one.name]),
            connections=one.connections,
            storage_bytes=one.storage_bytes,
        )
        for one in sampled
        if one.running and one.name in counters
    ]
    stopped = [one.database_id for one in sampled if not one.running]
    try:
        return await recording.record(taken, at, longest=timedelta(seconds=longest_gap), stopped=stopped)
    except asyncpg.PostgresError as error:
        log.error("metrics_not_recorded", host=host_id, reason=str(error))
        return 0


async def roll_up(at: datetime) -> None:
    """Sums up what is settled at that moment."""
    try:
        await rollups.roll_up(at)
    except asyncpg.PostgresError as error:
        log.error("metrics_not_rolled_up", reason=str(error))


async def drop_old_metrics(_: int, __: timedelta) -> int:
    """A rule of the sweep: drops what is older than each kind is kept. Returns how many partitions."""
    now, dropped = utc_now(), 0
    for resolution in rollups.RESOLUTIONS:
        dropped += await partitions.drop_before(resolution.table, now - resolution.retention)
    return dropped + await partitions.drop_before(METRIC_GAPS, now - rollups.HOURS.retention)
