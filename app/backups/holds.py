"""What keeps a backup: a restoration under way needs it until the restoration has ended.

A transaction that ends a backup locks its row, and looks for restorations afterwards; one that begins a restoration
locks the row too, and looks whether the backup is still completed. So one of the two sees the other.
"""

from uuid import UUID

import msgspec

from app.backups.sources import BACKUP
from app.contracts.backups import BackupStatus
from app.core.errors import BackupBeingRestored, BackupNotCompleted, NotFound
from app.operations.kinds import OperationType
from app.operations.records import open_on
from app.store.session import fetch_one, fetch_value


class _Restored(msgspec.Struct, frozen=True):
    """A database that is being restored."""

    id: int
    uuid: UUID


async def hold(backup: UUID) -> None:
    """Locks the backup for a restoration that is accepted in the current transaction. Raises `NotFound` or
    `BackupNotCompleted`."""
    status = await fetch_value(BackupStatus, "SELECT status FROM backups WHERE uuid = $1 FOR SHARE", backup)
    if status is None or status is BackupStatus.DELETED:
        raise NotFound(BACKUP)
    if status is not BackupStatus.COMPLETED:
        raise BackupNotCompleted(status.value)


async def expect_unneeded(backup: UUID) -> None:
    """Raises `BackupBeingRestored` while a restoration needs the backup, whose row must be locked."""
    found = await fetch_one(
        _Restored,
        """
        SELECT d.id, d.uuid FROM backups b
        JOIN restorations r ON r.ended_at IS NULL AND (r.backup_uuid = b.uuid OR r.before_uuid = b.uuid)
        JOIN databases d ON d.id = r.database_id WHERE b.uuid = $1 ORDER BY r.id LIMIT 1
        """,
        backup,
    )
    if found is None:
        return
    operations = await open_on(found.id, (OperationType.RESTORE, OperationType.CLONE))
    raise BackupBeingRestored(found.uuid, operations[0].uuid if operations else None)
