"""Measurements as they are kept, and the time that databases run."""

from collections.abc import Sequence
from datetime import date, datetime

import msgspec

from app.contracts.base import DatabaseStatus, PauseReason
from app.plans.plans import PLANS, Quotas, limits_in_force
from app.quotas.decision import GIB, Standing, Verdict
from app.store.session import fetch, fetch_all


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One database, measured once. `use` is the share of the looks, from 0 to 1, that found a session open."""

    database_id: int
    storage_bytes: int
    use: float


_RECORD = """
INSERT INTO database_usage AS u (database_id, measured_at, storage_bytes, connected, runtime_month)
SELECT s.database_id, $4, s.storage_bytes, s.use > 0, $5
FROM unnest($1::bigint[], $2::bigint[], $3::float8[]) AS s (database_id, storage_bytes, use)
JOIN databases d ON d.id = s.database_id AND d.status <> 'deleted'
ORDER BY s.database_id
ON CONFLICT (database_id) DO UPDATE SET
    measured_at = excluded.measured_at, storage_bytes = excluded.storage_bytes, connected = excluded.connected,
    runtime_month = excluded.runtime_month,
    runtime_seconds = CASE WHEN u.runtime_month = excluded.runtime_month THEN u.runtime_seconds ELSE 0 END
        -- What lies before the month is the last one's.
        + least(extract(epoch FROM excluded.measured_at - greatest(u.measured_at, $6)), $7)
          * (SELECT s.use FROM unnest($1::bigint[], $3::float8[]) AS s (database_id, use)
             WHERE s.database_id = excluded.database_id)
WHERE u.measured_at < excluded.measured_at
"""


async def record(samples: Sequence[Sample], at: datetime, *, longest_gap: float) -> None:
    """Keeps the samples, all taken at that moment. One that finds its database in use adds its share of the time
    since the last, up to `longest_gap` seconds, to the month's runtime: what no sample saw is nobody's. One that is not
    newer than the last changes nothing, so that repeated and overlapping runs count no time twice."""
    month = month_of(at)
    await fetch(
        _RECORD,
        [sample.database_id for sample in samples],
        [sample.storage_bytes for sample in samples],
        [sample.use for sample in samples],
        at,
        month,
        at.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
        longest_gap,
    )


async def record_kept(database_id: int, storage_bytes: int, at: datetime) -> None:
    """The size of a deleted database, measured when its access had ended. Its hours stay as they were."""
    await fetch(
        """
        INSERT INTO database_usage AS u (database_id, measured_at, storage_bytes, connected, runtime_month)
        VALUES ($1, $2, $3, false, $4)
        ON CONFLICT (database_id) DO UPDATE SET storage_bytes = excluded.storage_bytes
        """,
        database_id,
        at,
        storage_bytes,
        month_of(at),
    )


def month_of(at: datetime) -> date:
    """The first day of its month. `at` is in UTC."""
    return at.date().replace(day=1)


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    database_id: int
    plan: str
    status: DatabaseStatus
    paused_reason: PauseReason | None
    frozen_at: datetime | None
    access_revision: int
    access_applied: int
    access_changed_at: datetime | None
    storage_hard_limit_gb: float | None
    connection_hard_limit: int | None
    warning_threshold_pct: int | None
    measured_at: datetime
    judged_at: datetime | None
    storage_bytes: int
    runtime_month: date
    runtime_seconds: float
    runtime_excused: date | None
    warned_at: datetime | None
    frozen_bytes: int | None
    growing: int


_STANDINGS = """
SELECT u.*, d.plan, d.status, d.paused_reason, d.frozen_at, d.access_revision, d.access_applied, d.access_changed_at,
       d.storage_hard_limit_gb, d.connection_hard_limit, d.warning_threshold_pct
FROM database_usage u JOIN databases d ON d.id = u.database_id
WHERE u.database_id = any($1::bigint[]) AND d.status IN ('active', 'paused')
"""


async def standings(database_ids: Sequence[int], *, lock: bool = False) -> dict[int, Standing]:
    """By the database's id. With `lock` the measurements stay as they are until the end of the transaction."""
    rows = await fetch_all(_Row, _STANDINGS + ("FOR UPDATE OF u" if lock else ""), list(database_ids))
    return {row.database_id: _standing(row) for row in rows}


def _standing(row: _Row) -> Standing:
    quotas = Quotas(
        storage_hard_limit_gb=row.storage_hard_limit_gb,
        connection_hard_limit=row.connection_hard_limit,
        warning_threshold_pct=row.warning_threshold_pct,
    )
    limits, hours = limits_in_force(row.plan, quotas), PLANS[row.plan].runtime_hours
    return Standing(
        status=row.status,
        paused_reason=row.paused_reason,
        frozen=row.frozen_at is not None,
        access_settled=row.access_applied >= row.access_revision,
        unsettled_since=row.access_changed_at if row.access_applied < row.access_revision else None,
        limit_bytes=limits.storage_hard_limit_gb * GIB,
        warning_pct=limits.warning_threshold_pct,
        runtime_limit_seconds=None if hours is None else hours * 3600,
        measured_at=row.measured_at,
        judged_at=row.judged_at,
        storage_bytes=row.storage_bytes,
        runtime_month=row.runtime_month,
        runtime_seconds=row.runtime_seconds,
        runtime_excused=row.runtime_excused,
        warned=row.warned_at is not None,
        frozen_bytes=row.frozen_bytes,
        growing=row.growing,
    )


async def remember(database_id: int, verdict: Verdict) -> None:
    """What the next judgement has to know, in the transaction of what this one led to."""
    await fetch(
        """
        UPDATE database_usage SET judged_at = measured_at, frozen_bytes = $3, growing = $4,
               warned_at = CASE WHEN $2 THEN coalesce(warned_at, now()) END
        WHERE database_id = $1
        """,
        database_id,
        verdict.warned,
        verdict.frozen_bytes,
        verdict.growing,
    )


async def excuse(database_id: int, at: datetime) -> None:
    """Lets the database run beyond its plan's hours until the month turns."""
    await fetch("UPDATE database_usage SET runtime_excused = $2 WHERE database_id = $1", database_id, month_of(at))
