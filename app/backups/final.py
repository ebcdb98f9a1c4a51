"""The last backup of a deleted database, without which its data is not destroyed."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from app.audit.drafts import note
from app.backups import records
from app.backups.operation import find_operation, mark_cancelled
from app.backups.policies import BackupTerms, find_rules
from app.backups.records import BackupRecord
from app.backups.requests import request_backup
from app.backups.retention import has_room, make_room
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.base import DatabaseStatus
from app.core.errors import DatabaseNotDeleted, NotFound
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.operations import ends
from app.operations.kinds import OperationStatus
from app.operations.reasons import ReasonCode
from app.store.session import fetch_all, fetch_scalar, fetch_value, transaction

_FIRST_PAUSE = timedelta(seconds=30)
_LONGEST_PAUSE = timedelta(hours=1)
_MOST_DOUBLINGS = 7
"""After so many the pause is the longest."""

# The final backup of this deletion: one from before an undeletion lacks what was written since.
_LATEST = """
SELECT b.uuid FROM backups b JOIN databases d ON d.id = b.database_id
WHERE d.uuid = $1 AND b.kind = 'final' AND b.created_at >= d.deleted_at ORDER BY b.id DESC LIMIT 1
"""
_FAILURES = """
SELECT count(*) FROM backups b JOIN databases d ON d.id = b.database_id
WHERE d.uuid = $1 AND b.kind = 'final' AND b.status = 'failed' AND b.created_at >= d.deleted_at
"""
_COMPLETED = """
SELECT DISTINCT ON (d.uuid) d.uuid AS database, b.uuid AS backup FROM backups b JOIN databases d ON d.id = b.database_id
WHERE d.uuid = any($1::uuid[]) AND b.kind = 'final' AND b.status = 'completed' AND b.created_at >= d.deleted_at
ORDER BY d.uuid, b.id DESC
"""


class FinalBackupPending(Exception):
    """The data has to stay until there is a final backup of it."""


class FinalBackupFailed(FinalBackupPending):
    """The last backup has failed, and another one is asked for, at once or after a pause."""


class FinalBackups:
    """Asks for the final backups of databases whose policy is on. One for each process."""

    def __init__(self, terms: BackupTerms) -> None:
        self._terms = terms

    async def request(self, database: UUID) -> None:
        """Asks for the backup of a deleted database, once, when the access to it has ended. A database that never
        became active has nothing to be kept. If the team has as many backups as its tier allows, the backup is asked
        for when the grace is over: until then the database may be undeleted again and again, each time with one more
        backup."""
        async with transaction():
            record = await databases.find_for_update(database)
            if record is None or not await self._is_wanted(record) or await _latest(database) is not None:
                return
            assert record.team_id is not None, "what is nobody's is not wanted"
            if await has_room(self._terms.plans, record.team_id):
                await self._request(record)

    async def expect_made(self, database: UUID) -> None:
        """Checks, before anything is destroyed, that there is a final backup. Raises `FinalBackupPending` while the
        destruction has to wait; a backup that failed is asked for again, after a pause. One that was cancelled by an
        operator, or has been deleted since, is waived."""
        failed = False
        async with transaction():
            record = await databases.find_for_update(database)
            if record is None or not await self._is_wanted(record):
                return
            latest = await _latest(database)
            if latest is not None and latest.status not in (
                BackupStatus.PENDING,
                BackupStatus.RUNNING,
                BackupStatus.FAILED,
            ):
                return
            failed = latest is not None and latest.status is BackupStatus.FAILED
            if latest is None or (failed and await _may_follow(latest, database)):
                await self._request(record)
        raise FinalBackupFailed("the final backup failed") if failed else FinalBackupPending("no final backup yet")

    async def _request(self, record: DatabaseRecord) -> None:
        assert record.team_id is not None, "what is nobody's is not wanted"
        await make_room(self._terms.plans, record.team_id, counted=True)
        await request_backup(record, BackupKind.FINAL)

    async def _is_wanted(self, record: DatabaseRecord) -> bool:
        # A destruction that has begun may have removed the data, and its answer been lost: what can't be made any more
        # is not waited for, though the policy was turned on meanwhile.
        if record.status is not DatabaseStatus.DELETED or record.destruction_began_at or record.destroyed_at:
            return False
        if record.team_id is None or record.provisioned_at is None or record.remote_since is None:
            return False
        # What lies there is not whole, and never will be: it would be taken for the newest.
        if await records.is_lost(record.id):
            return False
        return (await find_rules(self._terms.plans, record.id, record.plan)).enabled


async def waive(database: UUID) -> None:
    """Lets the data of a deleted database go without a final backup, for an operator. Raises `NotFound` or
    `DatabaseNotDeleted`."""
    async with transaction():
        record = await databases.find_for_update(database)
        if record is None or record.team_id is None or record.destroyed_at is not None:
            raise NotFound("database")
        if record.status is not DatabaseStatus.DELETED:
            raise DatabaseNotDeleted(record.status.value)
        note(team_id=record.team_id)
        latest = await _latest(database)
        if latest is None or not latest.under_way:
            latest = (await request_backup(record, BackupKind.FINAL)).record
        operation = await find_operation(latest)
        if await mark_cancelled(latest.uuid) and operation is not None:
            await ends.end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)


class _Completed(msgspec.Struct, frozen=True):
    database: UUID
    backup: UUID


async def completed_of(deleted: Sequence[UUID]) -> dict[UUID, UUID]:
    """The final backups of these deleted databases that are completed, by database."""
    return {one.database: one.backup for one in await fetch_all(_Completed, _COMPLETED, list(deleted))}


async def _may_follow(failed: BackupRecord, database: UUID) -> bool:
    """Whether the pause after a final backup that failed is over. It doubles with each failure since the deletion: what
    can't be dumped fails at once, and each failure is an operation and an event."""
    failures = await fetch_scalar(int, _FAILURES, database)
    pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, _MOST_DOUBLINGS), _LONGEST_PAUSE)
    return bool(failed.read_at - failed.changed_at >= pause)


async def _latest(database: UUID) -> BackupRecord | None:
    found = await fetch_value(UUID, _LATEST, database)
    return None if found is None else await records.find_for_update(found)
