"""Our records of backups beside what the store holds of them, for the comparison of both, and for bringing back what
only the store knows."""

from collections.abc import AsyncIterator
from uuid import UUID

import msgspec

from app.backups.manifests import quotas_of
from app.backups.storage.manifest import BackupManifest
from app.contracts.backups import BackupStatus
from app.engines.dumping import count_rows, count_tables
from app.store.session import execute, fetch_all, fetch_one

_PAGE = 1000


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What our record of a backup says of the store."""

    id: int
    uuid: UUID
    status: BackupStatus
    stored_bytes: int | None
    removed: bool
    """Whether the store had nothing of the backup any more."""
    locked: bool
    """Whether Object Lock keeps it there, whatever its status is."""

    @property
    def kept(self) -> bool:
        """Whether it has to be in the store."""
        return self.status is BackupStatus.COMPLETED and not self.removed

    @property
    def under_way(self) -> bool:
        """Whether it may be written now."""
        return self.status in (BackupStatus.PENDING, BackupStatus.RUNNING)


_SELECT = (
    "SELECT id, uuid, status, stored_bytes, removed_at IS NOT NULL AS removed,"
    " coalesce(locked_until > now(), false) AS locked FROM backups"
)


async def stored_records() -> AsyncIterator[StoredRecord]:
    """Yields all records, read in pages."""
    last = 0
    while page := await fetch_all(StoredRecord, f"{_SELECT} WHERE id > $1 ORDER BY id LIMIT {_PAGE}", last):
        for record in page:
            yield record
        last = page[-1].id


async def stored_record(backup: UUID) -> StoredRecord | None:
    return await fetch_one(StoredRecord, f"{_SELECT} WHERE uuid = $1", backup)


async def adopt(manifest: BackupManifest, sealed_key: bytes, team_id: int, *, region: str | None = None) -> bool:
    """Makes a record of a backup that only the store knows, as this team's. `region` is where it is tested, and
    restored unless another region is asked for; without it, the region of its database. The backup is kept for a day at
    least. False if there is a record already, which stays as it is."""
    return bool(
        await execute(
            """
            INSERT INTO backups (uuid, team_id, database_uuid, database_name, engine, region, plan, quotas, kind,
                                 description, wrapped_key, format, consistent_at, position, size_bytes, stored_bytes,
                                 tables, rows, created_at, expires_at,
                                 status, priority, admitted_at, started_at, completed_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12::jsonb, $13, $14, $15, $16, $17, $18, $19,
                    CASE WHEN $20::timestamptz IS NOT NULL THEN greatest($20, now() + interval '1 day') END,
                    'completed', 0, now(), now(), now())
            ON CONFLICT (uuid) DO NOTHING
            """,
            manifest.backup,
            team_id,
            manifest.database,
            manifest.database_name,
            manifest.db_type,
            region or manifest.region,
            manifest.plan,
            msgspec.json.encode(quotas_of(manifest)).decode(),
            manifest.kind,
            manifest.description,
            sealed_key,
            msgspec.json.encode(manifest.format).decode(),
            manifest.consistent_at,
            manifest.position,
            manifest.plain_bytes,
            manifest.stored_bytes,
            count_tables(manifest.contents),
            count_rows(manifest.contents),
            manifest.created_at,
            manifest.expires_at,
        )
    )


async def set_key(backup: UUID, sealed_key: bytes) -> None:
    """Replaces the sealed key by another form of the same key."""
    await execute("UPDATE backups SET wrapped_key = $2 WHERE uuid = $1 AND removed_at IS NULL", backup, sealed_key)
