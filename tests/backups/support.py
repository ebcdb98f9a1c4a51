"""Rows of databases and backups, where nothing has to happen on a host."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from app.backups.admission import BackupLimits
from app.backups.policies import BackupTerms
from app.contracts.backups import BackupKind, BackupStatus
from app.databases import records
from app.databases.records import DatabaseRecord
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction

TERMS = BackupTerms(plans=DEFAULT_PLANS, hour=timedelta(hours=1), limits=BackupLimits())


async def database_row(database: str) -> DatabaseRecord:
    record = await records.find(UUID(database))
    assert record is not None
    return record


async def add_backup(
    database: DatabaseRecord,
    *,
    kind: BackupKind = BackupKind.SCHEDULED,
    status: BackupStatus = BackupStatus.COMPLETED,
    days_ago: float = 0,
    expires_in_days: float | None = None,
    stored_bytes: int = 0,
    **columns: Any,
) -> UUID:
    """A backup as its row is at some time after its request."""
    uuid = uuid4()
    async with transaction():  # no worker is to see it as it is not
        await fetch(
            "INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan,"
            " quotas, kind, status, priority, consistent_at, completed_at, expires_at, stored_bytes, admitted_at)"
            " SELECT $1, team_id, id, uuid, name, engine, region, plan, '{}', $3, $4, 5,"
            " now() - make_interval(secs => $5), now(), now() + make_interval(secs => $6), $7,"
            " CASE WHEN $4 <> 'pending' THEN now() END FROM databases WHERE uuid = $2",
            uuid,
            database.uuid,
            kind.value,
            status.value,
            days_ago * 86400,
            None if expires_in_days is None else expires_in_days * 86400,
            stored_bytes,
        )
        for name, value in columns.items():
            await fetch(f"UPDATE backups SET {name} = $2 WHERE uuid = $1", uuid, value)
    return uuid


async def status_of(backup: UUID) -> str:
    [row] = await fetch("SELECT status FROM backups WHERE uuid = $1", backup)
    return str(row["status"])
