"""The stored measurements of databases: storage, and the time that they run."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, PauseReason
from app.engines.base import Usage
from app.quotas.decision import GIB, QuotaActions, QuotaState
from app.quotas.plans import Plans, Quotas, limits_in_force
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, fetch_value
from app.store.tables.usage import DatabaseUsage


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one database, looked at once: the share of the looks, from 0 to 1, that found a session open."""

    database_id: int
    use: float


_RECORD_USE = """
INSERT INTO database_usage AS u (database_id, measured_at, storage_bytes, connected, runtime_month)
SELECT s.database_id, $3, 0, s.use > 0, $4
FROM unnest($1::bigint[], $2::float8[]) AS s (database_id, use)
JOIN databases d ON d.id = s.database_id AND d.status <> 'deleted'
ORDER BY s.database_id
ON CONFLICT (database_id) DO UPDATE SET
    measured_at = excluded.measured_at, connected = excluded.connected, runtime_month = excluded.runtime_month,
    runtime_seconds = CASE WHEN u.runtime_month = excluded.runtime_month THEN u.runtime_seconds ELSE 0 END
        -- What lies before the month is the last one's.
        + least(extract(epoch FROM excluded.measured_at - greatest(u.measured_at, $5)), $6)
          * (SELECT s.use FROM unnest($1::bigint[], $2::float8[]) AS s (database_id, use)
             WHERE s.database_id = excluded.database_id)
WHERE u.measured_at < excluded.measured_at
"""


async def record_use(samples: Sequence[Sample], at: datetime, *, longest_gap: float) -> None:
    """Keeps the samples, all taken at that moment. A sample that finds its database in use adds its share of the time
    since the last, up to `longest_gap` seconds, to the month's runtime: time that no sample saw counts for nobody. A
    sample that is not newer than the last changes nothing, so that repeated and overlapping runs count no time
    twice."""
    await execute(
        _RECORD_USE,
        [sample.database_id for sample in samples],
        [sample.use for sample in samples],
        at,
        month_of(at),
        at.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
        longest_gap,
    )


async def record_retained(database_id: int, storage_bytes: int, at: datetime) -> None:
    """Records the size of a deleted database, measured when its access had ended. Its hours stay as they were."""
    await execute(
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


# Locked in the order in which all lock them, or two could wait for each other.
_RECORD_STORAGE = """
WITH locked AS (
    SELECT id, database_id FROM database_usage WHERE database_id = any($1::bigint[])
    ORDER BY database_id FOR NO KEY UPDATE
)
UPDATE database_usage u SET storage_bytes = s.storage_bytes, rebuilding = s.rebuilding, was_rebuilding = u.rebuilding,
       storage_measured_at = $4, measured_alone_at = $5,
       unmeasured_since = NULL, measure_failures = 0, measure_failure = NULL
FROM locked JOIN unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS s (database_id, storage_bytes, rebuilding)
     USING (database_id)
WHERE u.id = locked.id AND (u.storage_measured_at IS NULL OR u.storage_measured_at < $4)
  AND NOT EXISTS (SELECT FROM databases d WHERE d.id = u.database_id AND d.restoring_at IS NOT NULL)
"""


async def record_storage(found: Mapping[int, Usage], at: datetime, *, alone_at: datetime | None = None) -> None:
    """Keeps the storage of databases, by their ids. Databases whose measuring takes long are measured apart from the
    others, not before `alone_at`. A measurement that is not newer than the last changes nothing, nor does one of a
    database that is being restored: it is empty at times, and would count as below its limit."""
    octets, rebuilding = [one.storage_bytes for one in found.values()], [one.rebuilding for one in found.values()]
    await execute(_RECORD_STORAGE, list(found), octets, rebuilding, at, alone_at)


async def storage_of(database_id: int) -> int:
    """The storage of a database in bytes, as it was last measured; 0 where it never was."""
    sql = "SELECT storage_bytes FROM database_usage WHERE database_id = $1"
    return await fetch_value(int, sql, database_id) or 0


class _OnHost(msgspec.Struct, frozen=True):
    host_id: int
    octets: int


async def stored_on_hosts() -> dict[int, int]:
    """By host: the bytes that its databases took together when each was measured last, deleted databases that are not
    yet destroyed included."""
    sql = """
    SELECT d.host_id, sum(u.storage_bytes)::bigint AS octets
    FROM database_usage u JOIN databases d ON d.id = u.database_id
    WHERE d.destroyed_at IS NULL AND u.storage_bytes IS NOT NULL GROUP BY d.host_id
    """
    return {one.host_id: one.octets for one in await fetch_all(_OnHost, sql)}


class _Measured(msgspec.Struct, frozen=True):
    uuid: UUID
    storage_measured_at: datetime


async def measured_at(databases: Sequence[UUID]) -> dict[UUID, datetime]:
    """When the storage of each was measured last; one that never was is left out."""
    sql = """
    SELECT d.uuid, u.storage_measured_at FROM database_usage u JOIN databases d ON d.id = u.database_id
    WHERE d.uuid = any($1::uuid[]) AND u.storage_measured_at IS NOT NULL
    """
    return {one.uuid: one.storage_measured_at for one in await fetch_all(_Measured, sql, list(databases))}


class _Size(msgspec.Struct, frozen=True):
    database_id: int
    storage_bytes: int


async def storage_measured_at(database_ids: Sequence[int], at: datetime) -> dict[int, int]:
    """The bytes that these databases hold, by id, for those that were measured at that moment."""
    sql = "SELECT database_id, storage_bytes FROM database_usage WHERE database_id = any($1::bigint[])"
    found = await fetch_all(_Size, f"{sql} AND storage_measured_at = $2", list(database_ids), at)
    return {one.database_id: one.storage_bytes for one in found}


async def measure_alone(database_ids: Sequence[int], at: datetime) -> None:
    """Has these databases measured alone from that moment on: they couldn't be measured together, most likely because
    of one of them."""
    await execute(
        "WITH locked AS (SELECT id FROM database_usage WHERE database_id = any($1::bigint[])"
        " ORDER BY database_id FOR NO KEY UPDATE)"
        " UPDATE database_usage u SET measured_alone_at = $2 FROM locked WHERE u.id = locked.id",
        list(database_ids),
        at,
    )


_RECORD_FAILURE = """
UPDATE database_usage SET unmeasured_since = coalesce(unmeasured_since, $2), measure_failures = measure_failures + 1,
       measure_failure = left($3, 500), measured_alone_at = $4
WHERE database_id = $1
"""


async def record_failure(database_id: int, at: datetime, reason: str, *, retry_at: datetime) -> None:
    """Records that a database couldn't be measured even alone."""
    await execute(_RECORD_FAILURE, database_id, at, reason, retry_at)


def month_of(at: datetime) -> date:
    """The first day of the month of `at`, which is in UTC."""
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
    storage_measured_at: datetime | None
    judged_at: datetime | None
    storage_bytes: int
    runtime_month: date
    runtime_seconds: float
    runtime_excused: date | None
    warned_at: datetime | None
    frozen_bytes: int | None
    growing: int
    rebuilding: bool
    was_rebuilding: bool


_STANDINGS = f"""
SELECT {columns_of(DatabaseUsage, "u")},
       d.plan, d.status, d.paused_reason, d.frozen_at, d.access_revision, d.access_applied, d.access_changed_at,
       d.storage_hard_limit_gb, d.connection_hard_limit, d.warning_threshold_pct
FROM database_usage u JOIN databases d ON d.id = u.database_id
WHERE u.database_id = any($1::bigint[]) AND d.status IN ('active', 'paused') AND d.restoring_at IS NULL
"""  # noqa: S608 - our own words


async def standings(plans: Plans, database_ids: Sequence[int], *, lock: bool = False) -> dict[int, QuotaState]:
    """The states of databases, by id, but for those that are being restored: each keeps the standing that it had, until
    it is whole. With `lock` the measurements stay as they are until the end of the transaction."""
    rows = await fetch_all(
        _Row, _STANDINGS + ("ORDER BY u.database_id FOR UPDATE OF u" if lock else ""), list(database_ids)
    )
    return {row.database_id: _standing(plans, row) for row in rows}


def _standing(plans: Plans, row: _Row) -> QuotaState:
    quotas = Quotas(
        storage_hard_limit_gb=row.storage_hard_limit_gb,
        connection_hard_limit=row.connection_hard_limit,
        warning_threshold_pct=row.warning_threshold_pct,
    )
    limits, hours = limits_in_force(plans, row.plan, quotas), plans.by_name[row.plan].runtime_hours
    return QuotaState(
        status=row.status,
        paused_reason=row.paused_reason,
        frozen=row.frozen_at is not None,
        access_settled=row.access_applied >= row.access_revision,
        unsettled_since=row.access_changed_at if row.access_applied < row.access_revision else None,
        limit_bytes=limits.storage_hard_limit_gb * GIB,
        warning_pct=limits.warning_threshold_pct,
        runtime_limit_seconds=None if hours is None else hours * 3600,
        measured_at=row.storage_measured_at or row.measured_at,
        judged_at=row.judged_at,
        storage_bytes=row.storage_bytes,
        runtime_month=row.runtime_month,
        runtime_seconds=row.runtime_seconds,
        runtime_excused=row.runtime_excused,
        warned=row.warned_at is not None,
        frozen_bytes=row.frozen_bytes,
        growing=row.growing,
        rebuilding=row.rebuilding or row.was_rebuilding,
    )


async def remember(database_id: int, verdict: QuotaActions) -> None:
    """Records what the next judgement has to know, in the transaction of what this one led to."""
    await execute(
        """
        UPDATE database_usage SET judged_at = storage_measured_at, frozen_bytes = $3, growing = $4,
               warned_at = CASE WHEN $2 THEN coalesce(warned_at, now()) END
        WHERE database_id = $1
        """,
        database_id,
        verdict.warned,
        verdict.frozen_bytes,
        verdict.growing,
    )


async def forget_growth(database_id: int) -> None:
    """Forgets the growth of a database whose data was replaced: what the next measurement finds counts as what there
    was when it was frozen."""
    sql = "UPDATE database_usage SET frozen_bytes = NULL, growing = 0, judged_at = storage_measured_at"
    await execute(f"{sql} WHERE database_id = $1", database_id)


async def withdraw_excuse(database_id: int) -> None:
    """Undoes `excuse`."""
    await execute("UPDATE database_usage SET runtime_excused = NULL WHERE database_id = $1", database_id)


async def excuse(database_id: int, at: datetime) -> None:
    """Lets the database run beyond its plan's hours until the month turns."""
    await execute("UPDATE database_usage SET runtime_excused = $2 WHERE database_id = $1", database_id, month_of(at))
