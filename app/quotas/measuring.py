"""Measuring the storage of one host's databases: a few at a time, those that have gone unmeasured longest first. What
was measured is stored immediately, and no database spends another's time.

Where some can't be measured together, each of them is measured alone, for one of them is most likely why; the ones that
can't be measured even alone are tried again later and later, with more time each.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from app.engines.base import EngineAdapter, EngineError, HostUnavailable, Measuring, Usage
from app.quotas import usage
from app.store.session import fetch_all

_SLOW_TIMES = 10
"""A database that takes more than its share of a batch is measured again after so many times what it took."""
_BACK_OFF = timedelta(minutes=1)
_MOST_BACK_OFF = timedelta(hours=1)
log = structlog.get_logger(__name__)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What measuring one host may take, in seconds."""

    together: float = 12.0
    """For all databases that are measured with others."""
    alone: float = 6.0
    """For all databases that are measured by themselves."""
    at_once: int = 50
    """How many databases are in a batch."""
    batch: float = 5.0
    first: float = 2.0
    """For one database that is measured alone; doubled with each failure."""

    def of_one(self, failures: int) -> float:
        return min(self.first * (1 << min(failures, 10)), self.alone)

    @property
    def share(self) -> float:
        """The time of each database in a batch."""
        return self.batch / self.at_once


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A database that is to be measured."""

    id: int
    engine_name: str
    alone: bool
    """It is measured apart from the others."""
    failures: int
    """How many in a row."""


_DUE = """
SELECT d.id, d.engine_name, u.measured_alone_at IS NOT NULL AS alone, u.measure_failures AS failures
FROM databases d JOIN database_usage u ON u.database_id = d.id
WHERE d.id = any($1::bigint[]) AND d.restoring_at IS NULL
  AND (u.measured_alone_at IS NULL OR u.measured_alone_at <= $2)
ORDER BY coalesce(u.measured_alone_at, u.storage_measured_at) NULLS FIRST, d.id
"""


async def measure_storage(
    adapter: EngineAdapter, database_ids: Sequence[int], at: datetime, bounds: Bounds | None = None
) -> int:
    """Measures those of these databases that are due, are not being restored, and can be measured in time; returns how
    many these were. Raises `EngineError` when the host as a whole can't be asked."""
    bounds = bounds or Bounds()
    due = await fetch_all(Measured, _DUE, list(database_ids), at)
    if not due:
        return 0
    async with adapter.measuring([one.engine_name for one in due]) as measuring:
        counted = await _measure_together(measuring, [one for one in due if not one.alone], at, bounds)
        # Those that have just failed together are alone from now on.
        apart = [one for one in await fetch_all(Measured, _DUE, list(database_ids), at) if one.alone]
        return counted + await _measure_alone(measuring, apart, at, bounds)


async def _measure_together(measuring: Measuring, due: Sequence[Measured], at: datetime, bounds: Bounds) -> int:
    deadline, counted = time.monotonic() + bounds.together, 0
    for first in range(0, len(due), bounds.at_once):
        # A batch has all of its time or none, so that what fails in it has failed for its own sake.
        if first and deadline - time.monotonic() < bounds.batch:
            break
        batch = due[first : first + bounds.at_once]
        try:
            found = await _usage(measuring, batch, bounds.batch)
        except HostUnavailable:
            raise
        except EngineError as error:
            log.info("measured_one_by_one", databases=len(batch), reason=str(error))
            await usage.measure_alone([one.id for one in batch], at)
        else:
            await usage.record_storage(found, at)
            counted += len(found)
    return counted


async def _measure_alone(measuring: Measuring, due: Sequence[Measured], at: datetime, bounds: Bounds) -> int:
    deadline, counted = time.monotonic() + bounds.alone, 0
    for number, one in enumerate(due):
        began, allowed = time.monotonic(), bounds.of_one(one.failures)
        if number and deadline - began < allowed:
            break
        try:
            found = await _usage(measuring, [one], allowed)
        except HostUnavailable:
            raise
        except EngineError as error:
            back_off = min(_BACK_OFF * 2 ** min(one.failures, 10), _MOST_BACK_OFF)
            await usage.record_failure(one.id, at, str(error), retry_at=at + back_off)
            log.warning("database_not_measured", tenant=one.engine_name, reason=str(error), failures=one.failures + 1)
        else:
            took = time.monotonic() - began
            again = at + timedelta(seconds=took * _SLOW_TIMES) if took > bounds.share else None
            await usage.record_storage(found, at, alone_at=again)
            counted += 1
    return counted


async def _usage(measuring: Measuring, batch: Sequence[Measured], seconds: float) -> dict[int, Usage]:
    """What the databases of a batch use, by id."""
    found = await measuring.usage([one.engine_name for one in batch], seconds)
    # Tenants of MySQL may drop their own database.
    nothing = Usage(storage_bytes=0, connections=0)
    return {one.id: found.get(one.engine_name, nothing) for one in batch}
