"""The rows of backups, as everything above the table reads them."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from app.audit.drafts import found
from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.contracts.base import Engine
from app.engines.dumping import DumpFormat
from app.quotas.plans import Quotas
from app.store.sealed import SealedColumn
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_value, fetch_values

SEALED_KEY = SealedColumn(table="backups", column="wrapped_key", row="s.uuid::text")
"""The sealed keys, which the store keeps too. `app.backups.storage.keys.key_place` is the place of one."""


class BackupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `backups`. `read_at` is when it was read, by our own database's clock."""

    id: int
    uuid: UUID
    team_id: int
    database_id: int | None
    database: UUID
    database_name: str
    engine: Engine
    region: str
    plan: str
    quotas_json: str
    kind: BackupKind
    status: BackupStatus
    description: str | None
    keep_days: int | None
    wrapped_key: bytes | None
    priority: int
    admitted_at: datetime | None
    attempts: int
    beat_at: datetime | None
    format_json: str | None
    consistent_at: datetime | None
    position: str | None
    size_bytes: int | None
    stored_bytes: int | None
    tables: int | None
    rows: int | None
    expires_at: datetime | None
    error: str | None
    proof_status: ProofStatus
    proof_number: int
    proof_changed_at: datetime | None
    proven_at: datetime | None
    restore_seconds: float | None
    proof_tables: int | None
    proof_rows: int | None
    proof_differences_json: str | None
    proof_error: str | None
    scratch_id: int | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    changed_at: datetime
    removed_at: datetime | None
    read_at: datetime

    @property
    def quotas(self) -> Quotas:
        """The limits that its database had of its own when the backup was asked for."""
        return msgspec.json.decode(self.quotas_json, type=Quotas)

    @property
    def format(self) -> DumpFormat | None:
        """How to load it; None before it is completed."""
        return None if self.format_json is None else msgspec.json.decode(self.format_json, type=DumpFormat)

    @property
    def proof_differences(self) -> list[Any]:
        return [] if self.proof_differences_json is None else msgspec.json.decode(self.proof_differences_json)

    @property
    def over(self) -> bool:
        """Whether it has ended and nothing can be restored from it."""
        return not self.under_way and self.status is not BackupStatus.COMPLETED

    @property
    def under_way(self) -> bool:
        return self.status in (BackupStatus.PENDING, BackupStatus.RUNNING)


COLUMNS = """
b.id, b.uuid, b.team_id, b.database_id, b.database_uuid AS database, b.database_name, b.engine, b.region, b.plan,
b.quotas::text AS quotas_json, b.kind, b.status, b.description, b.keep_days, b.wrapped_key, b.priority, b.admitted_at,
b.attempts, b.beat_at, b.format::text AS format_json, b.consistent_at, b.position, b.size_bytes, b.stored_bytes,
b.tables, b.rows, b.expires_at, b.error, b.proof_status, b.proof_number, b.proof_changed_at, b.proven_at,
b.restore_seconds, b.proof_tables, b.proof_rows, b.proof_differences::text AS proof_differences_json, b.proof_error,
b.scratch_id, b.created_at, b.started_at, b.completed_at, b.changed_at, b.removed_at, clock_timestamp() AS read_at
"""
_SELECT = f"SELECT {COLUMNS} FROM backups b"  # noqa: S608 - our own words


async def find(backup: UUID) -> BackupRecord | None:
    """The backup, in whatever state, of any team."""
    return await fetch_one(BackupRecord, f"{_SELECT} WHERE b.uuid = $1", backup)


async def find_for_update(backup: UUID) -> BackupRecord | None:
    """The same, with its row locked until the end of the transaction. Lock its database first, if you lock both."""
    return await fetch_one(BackupRecord, f"{_SELECT} WHERE b.uuid = $1 FOR NO KEY UPDATE", backup)


async def find_owned(backup: UUID, team_ids: list[int]) -> BackupRecord | None:
    """The backup, if it is one of these teams' and was not deleted."""
    return found(
        await fetch_one(
            BackupRecord,
            f"{_SELECT} WHERE b.uuid = $1 AND b.team_id = any($2::bigint[]) AND b.status <> 'deleted'",
            backup,
            team_ids,
        )
    )


async def list_owned(team_ids: list[int], *, after: UUID | None, limit: int) -> list[BackupRecord]:
    """These teams' backups, newest first, from the one that follows `after` on; none when that is not theirs."""
    return await fetch_all(BackupRecord, PAGE, team_ids, after, limit)


async def list_of_database(database_id: int, *, after: UUID | None, limit: int) -> list[BackupRecord]:
    """The backups of a database, newest first, from the one that follows `after` on; none when that is not a backup of
    the database."""
    return await fetch_all(BackupRecord, _PAGE_OF_DATABASE, database_id, after, limit)


async def team_of(backup: UUID, team_ids: list[int]) -> int | None:
    """Which of these teams has the backup, or had it until it was deleted."""
    return await fetch_value(
        int, "SELECT team_id FROM backups WHERE uuid = $1 AND team_id = any($2::bigint[])", backup, team_ids
    )


async def was_of_database(backup: UUID, database_id: int) -> bool:
    return await fetch_exists("SELECT 1 FROM backups WHERE uuid = $1 AND database_id = $2", backup, database_id)


SILENT_SECONDS = 60
"""An attempt counts as over so many seconds after its last sign of life."""

HELD = (
    "EXISTS (SELECT FROM restorations r WHERE r.ended_at IS NULL AND (r.backup_uuid = backups.uuid"
    " OR r.before_uuid = backups.uuid))"
)
"""SQL on a row of `backups`: whether a restore that is under way reads the backup, or would have to. Look with the row
locked, and not in the statement that locks it: a statement that has waited for a lock sees other tables as they were
before."""


LOST = (
    "(d.restoring_at IS NOT NULL AND coalesce((SELECT r.kind = 'move' AND r.outcome IS DISTINCT FROM 'completed'"
    " FROM restorations r WHERE r.database_id = d.id AND (r.kind = 'move' OR r.outcome = 'completed')"
    " ORDER BY r.id DESC LIMIT 1), false))"
)
"""SQL on a row `d` of `databases`: whether its host was lost, and the data on its new one is not whole. A restore in
place that begins meanwhile changes that only when it is completed. To act on it, look with the row locked."""


async def is_lost(database_id: int) -> bool:
    return await fetch_exists(f"SELECT 1 FROM databases d WHERE d.id = $1 AND {LOST}", database_id)  # noqa: S608


class Stored(msgspec.Struct, frozen=True):
    """What completed backups take in the store."""

    backups: int
    stored_bytes: int


async def stored_by(team_id: int) -> Stored:
    found = await fetch_one(
        Stored,
        "SELECT count(*) AS backups, coalesce(sum(stored_bytes), 0)::bigint AS stored_bytes FROM backups"
        " WHERE team_id = $1 AND status = 'completed'",
        team_id,
    )
    assert found is not None, "it counts"
    return found


async def under_way_of(database_id: int, kind: BackupKind | None = None) -> list[UUID]:
    """The backups under way of the database; without `kind`, those of every kind."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM backups WHERE database_id = $1 AND status IN ('pending', 'running')"
        " AND ($2::text IS NULL OR kind = $2) ORDER BY id",
        database_id,
        None if kind is None else kind.value,
    )


async def unattended_of(database_id: int) -> list[UUID]:
    """The backups by schedule of a database that have been admitted, and wait for a worker: no attempt is at them."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM backups WHERE database_id = $1 AND kind = 'scheduled' AND status IN ('pending', 'running')"
        " AND admitted_at IS NOT NULL AND coalesce(beat_at < now() - make_interval(secs => $2), true) ORDER BY id",
        database_id,
        SILENT_SECONDS,
    )


async def find_newest(database_id: int) -> BackupRecord | None:
    """The newest completed backup of the database: the one whose data is the latest."""
    return await fetch_one(
        BackupRecord,
        f"{_SELECT} WHERE b.database_id = $1 AND b.status = 'completed' ORDER BY b.consistent_at DESC LIMIT 1",
        database_id,
    )


# A backup that was taken since began after the end of the restoration: no dump runs while data is exchanged.
RESTORED = """
SELECT r.database_uuid, r.backup_uuid FROM (
    SELECT DISTINCT ON (r.database_id) r.database_id, d.uuid AS database_uuid, r.backup_uuid, r.ended_at
    FROM restorations r JOIN databases d ON d.id = r.database_id
    WHERE {which} AND r.kind IN ('in_place', 'move') AND r.outcome = 'completed' ORDER BY r.database_id, r.id DESC
) r
WHERE r.backup_uuid IS NOT NULL AND NOT EXISTS (
    SELECT FROM backups b
    WHERE b.database_id = r.database_id AND b.status = 'completed' AND b.started_at > r.ended_at)
"""
"""SQL on those databases `d` for which `{which}` holds, and that were last restored from a backup: the uuids of both.
The backup may be another database's, or gone."""


async def delete_gone_backups(limit: int, age: timedelta) -> int:
    """Deletes the rows of backups that ended so long ago and of which the store has nothing. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM backups WHERE id IN (
            SELECT id FROM backups WHERE removed_at IS NOT NULL AND changed_at < now() - $2::interval
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        limit,
        age,
    )


async def find_restored(database: UUID) -> BackupRecord | None:
    """The backup that the database was last restored from, in place or on another host, if it is completed and none
    was taken of the database since. A backup of a later moment, such as the one that is taken before a restore, holds
    what was replaced."""
    return await fetch_one(
        BackupRecord,
        f"{_SELECT} WHERE b.status = 'completed'"  # noqa: S608 - our own words
        f" AND b.uuid IN (SELECT backup_uuid FROM ({RESTORED.format(which='d.uuid = $1')}) restored)",
        database,
    )


# A page is read off one index, team by team, as that of databases is.
PAGE = f"""
SELECT {COLUMNS}
FROM unnest($1::bigint[]) AS mine (team_id)
CROSS JOIN LATERAL (
    SELECT * FROM backups
    WHERE team_id = mine.team_id AND status <> 'deleted' AND -id > (
        SELECT CASE WHEN $2::uuid IS NULL THEN -9223372036854775807
                    ELSE (SELECT -id FROM backups WHERE uuid = $2 AND team_id = any($1)) END
    )
    ORDER BY -id LIMIT $3
) b
ORDER BY b.id DESC LIMIT $3
"""  # noqa: S608 - our own words
_PAGE_OF_DATABASE = f"""
SELECT {COLUMNS} FROM backups b
WHERE b.database_id = $1 AND b.status <> 'deleted' AND -b.id > (
    SELECT CASE WHEN $2::uuid IS NULL THEN -9223372036854775807
                ELSE (SELECT -id FROM backups WHERE uuid = $2 AND database_id = $1) END
)
ORDER BY -b.id LIMIT $3
"""  # noqa: S608 - our own words
