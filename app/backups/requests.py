"""Asking for a backup: its row and its operation are written in the caller's transaction. Its turn comes by
`app.backups.admission`."""

from typing import Any

import msgspec

from app.backups import records
from app.backups.admission import BackupLimits, try_admit
from app.backups.records import BackupRecord
from app.contracts.backups import BackupKind
from app.contracts.queues import backup_workflow_id
from app.core.ids import new_uuid
from app.databases.records import DatabaseRecord
from app.operations.acceptance import accept
from app.operations.kinds import OperationType
from app.operations.reasons import ReasonCode, reason
from app.outbox.workflow_starts import INTERACTIVE, NORMAL, UPKEEP, PendingStart
from app.store.session import execute

PRIORITIES = {
    BackupKind.BEFORE_RESTORE: INTERACTIVE,
    BackupKind.MANUAL: INTERACTIVE,
    BackupKind.FINAL: NORMAL,
    BackupKind.SCHEDULED: UPKEEP,
}
"""By whether somebody waits for the backup, somebody asked for it, or nobody did."""


class RequestedBackup(msgspec.Struct, frozen=True, kw_only=True):
    """`start` is the workflow to start after the commit; None while the backup waits for its turn."""

    record: BackupRecord
    start: PendingStart | None


async def request_backup(
    database: DatabaseRecord,
    kind: BackupKind,
    *,
    description: str | None = None,
    keep_days: int | None = None,
    priority: int | None = None,
    limits: BackupLimits | None = None,
) -> RequestedBackup:
    """Writes a pending backup of a database that has a team and whose row is locked. A backup that a client or the
    schedule asks for can be cancelled by its operation; whatever else waits for a backup cancels it with itself. With
    `limits` it begins at once where there is room; else with the next look at the queue, a second later at most."""
    assert database.team_id is not None, "nothing of a database that is nobody's is kept"
    uuid = new_uuid()
    await execute(
        """
        INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan, quotas,
                             kind, status, description, keep_days, priority)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, 'pending', $11, $12, $13)
        """,
        uuid,
        database.team_id,
        database.id,
        database.uuid,
        database.name,
        database.engine.value,
        database.region,
        database.plan,
        msgspec.json.encode(database.quotas).decode(),
        kind.value,
        description,
        keep_days,
        PRIORITIES[kind] if priority is None else priority,
    )
    by_itself = kind in (BackupKind.MANUAL, BackupKind.SCHEDULED)
    undo: dict[str, Any] | None = {"backup": str(uuid)} if by_itself else None
    await accept(
        OperationType.BACKUP,
        database,
        workflow_id=backup_workflow_id(uuid),
        undo=undo,
        reason=reason(ReasonCode.QUEUED),
    )
    record = await records.find_for_update(uuid)
    assert record is not None, "it was written a moment ago"
    return RequestedBackup(record=record, start=None if limits is None else await try_admit(record, limits))
