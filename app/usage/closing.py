"""Closing the ledger's periods: what the meters have counted up to a period's end goes into the ledger, once.

The meters are written by triggers, in the transactions of what they count. Here nothing is measured: a period comes out
the same whenever it is closed, and however often that was tried.
"""

import asyncio
from datetime import datetime, timedelta

import msgspec
import structlog

from app.contracts.usage import ClosedPeriods
from app.store.partitions import drop_before, ensure
from app.store.session import execute, fetch_one, fetch_scalar, fetch_values, transaction
from app.store.tables.metering import LEDGER

_AT_ONCE = 500
"""The most meters in one transaction."""
_PARTS_AT_ONCE = 5000
_LOOK_SECONDS = 0.1
log = structlog.get_logger(__name__)


class _Border(msgspec.Struct, frozen=True):
    border: datetime
    """The end of the last period that is over."""
    is_new: bool
    horizon: str
    """The id of a transaction: this one and all after it began after the border."""


async def close(period_seconds: int, keep: timedelta, *, patience: float = 10.0) -> ClosedPeriods:
    """Closes the periods that are over. Any number of these calls may run at once, and each may end anywhere. While a
    transaction is open that began before the end of a period, in which it may count, nothing is closed; `patience` is
    how many seconds it is waited for. Partitions of the ledger are dropped when all their rows are older than
    `keep`."""
    await execute("UPDATE usage_clock SET period_seconds = $1 WHERE period_seconds <> $1", period_seconds)
    found = await fetch_one(_Border, _BORDER)
    assert found is not None, "the clock has one row"
    if not found.is_new or not await _is_settled(found.horizon, patience):
        return ClosedPeriods(through=None, rows=0)
    await _pass_border(found.border)
    rows = await _move(found.border)
    await execute("UPDATE usage_clock SET closed_through = greatest(closed_through, $1)", found.border)
    await execute(_REMOVE_ENDED)
    await drop_before(LEDGER, found.border - keep)
    # As with the ledger: months that are over.
    await execute("DELETE FROM usage_days WHERE starts_at < $1", LEDGER.span.begin(found.border - keep))
    return ClosedPeriods(through=found.border, rows=rows)


_BORDER = """
SELECT border, border > closed_through AS is_new, pg_snapshot_xmax(pg_current_snapshot())::text AS horizon
FROM (SELECT usage_period_of(usage_now(), period_seconds) AS border, closed_through FROM usage_clock) clock
"""
_IS_SETTLED = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8"


async def _is_settled(horizon: str, patience: float) -> bool:
    """Waits until all transactions before `horizon` have ended; False when they take too long."""
    looks = 1 + round(patience / _LOOK_SECONDS)
    for look in range(looks):
        if await fetch_scalar(bool, _IS_SETTLED, horizon):
            return True
        if look + 1 < looks:
            await asyncio.sleep(_LOOK_SECONDS)
    log.info("usage_not_closed", reason="a transaction is open that began before the period's end")
    return False


_FREE = "SELECT id FROM usage_meters WHERE at < $1 AND id > $2 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED"
_ANY = "SELECT id FROM usage_meters WHERE at < $1 AND id > $2 ORDER BY id LIMIT $3"


async def _pass_border(border: datetime) -> None:
    """Has every meter count beyond the border. Meters that other transactions hold come last, one at a time: whoever
    waits for a meter holds no other."""
    for which, most in ((_FREE, _AT_ONCE), (_ANY, 1)):
        last: int | None = 0
        while last is not None:
            last = await _count_on(which, border, last, most)


async def _count_on(which: str, border: datetime, after: int, most: int) -> int | None:
    """Has some meters count beyond the border. Returns the id of the last of them; None where none was left."""
    async with transaction():
        meters = await fetch_values(int, which, border, after, most)
        if meters:
            await execute("SELECT usage_advance($1)", meters)
        return meters[-1] if meters else None


class _Months(msgspec.Struct, frozen=True):
    first: datetime | None
    last: datetime | None


_TO_MOVE = "SELECT min(starts_at) AS first, max(starts_at) AS last FROM usage_parts WHERE ends_at <= $1"
_MOVE = """
WITH moved AS (
    DELETE FROM usage_parts WHERE id IN (SELECT id FROM usage_parts WHERE ends_at <= $1 ORDER BY id LIMIT $2)
    RETURNING *
)
INSERT INTO usage_periods (database_uuid, team_id, plan, region, starts_at, ends_at, since, runtime_seconds,
                           storage_byte_seconds, backup_byte_seconds)
SELECT database_uuid, team_id, plan, region, starts_at, ends_at, since, runtime_seconds, storage_byte_seconds,
       backup_byte_seconds
FROM moved
"""


async def _move(border: datetime) -> int:
    """Moves what is counted up to the border into the ledger. Returns the number of rows."""
    rows = 0
    while True:
        months = await fetch_one(_Months, _TO_MOVE, border)
        if months is None or months.first is None or months.last is None:
            return rows
        await ensure(LEDGER, months.first, months.last + timedelta(seconds=1))
        rows += await execute(_MOVE, border, _PARTS_AT_ONCE)


# Nothing is left of them that could count, and all that did is in the ledger.
_REMOVE_ENDED = """
DELETE FROM usage_meters
WHERE NOT kept AND NOT running AND backup_bytes = 0
  AND runtime_seconds = 0 AND storage_byte_seconds = 0 AND backup_byte_seconds = 0
"""
