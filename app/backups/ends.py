"""How a backup goes on and ends: its row, its operation and its event change together, and the row decides.

Locked in this order: the database, the operation, the backup.
"""

from uuid import UUID

import msgspec

from app.backups import records
from app.backups.events import append_event
from app.backups.operation import find_operation
from app.backups.policies import BackupTerms, find_rules, schedule_tested
from app.backups.records import BackupRecord
from app.backups.storage.manifest import BackupManifest
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.base import DatabaseStatus
from app.contracts.retries import CANCEL
from app.databases import records as databases
from app.databases.records import DatabaseRecord, NotWanted
from app.engines.dumping import count_rows, count_tables
from app.operations import ends
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.operations.records import OperationRecord
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import request_signal
from app.store.notify import announce
from app.store.session import execute, fetch_exists, transaction

MAX_ERROR = 1000


class LockedBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup, its database and its open operation, locked until the end of the transaction."""

    record: BackupRecord
    database: DatabaseRecord | None
    operation: OperationRecord | None
    lost: bool
    """Whether its database's host was lost, and the data on the new one is not whole."""


async def lock(backup: UUID) -> LockedBackup:
    """Raises `NotWanted` when there is no such backup."""
    found = await records.find(backup)
    if found is None:
        raise NotWanted(f"there is no backup {backup}")
    database = await databases.find_for_update(found.database)
    lost = database is not None and database.restoring_at is not None and await records.is_lost(database.id)
    operation = await find_operation(found)
    record = await records.find_for_update(backup)
    assert record is not None, "rows of backups are kept"
    return LockedBackup(record=record, database=database, operation=operation, lost=lost)


async def begin_attempt(backup: UUID, sealed: bytes) -> LockedBackup:
    """Returns the backup with one more attempt, or as it is when it is completed. `sealed` becomes its key, unless an
    earlier attempt has given it one: the row keeps the key before anything is written with it. Raises `NotWanted` when
    the backup has ended otherwise, or ends now because its database is gone, or soon will be, or isn't whole."""
    async with transaction():
        locked = await lock(backup)
        if locked.record.status is BackupStatus.COMPLETED:
            return locked
        if not locked.record.under_way:
            raise NotWanted(f"the backup is {locked.record.status.value}")
        unwanted = why_unwanted(locked)
        if unwanted is not None:
            await end_unwanted(locked, unwanted)
        else:
            await execute(
                "UPDATE backups SET status = 'running', attempts = attempts + 1, beat_at = now(), changed_at = now(),"
                " started_at = coalesce(started_at, now()), wrapped_key = coalesce(wrapped_key, $2) WHERE uuid = $1",
                backup,
                sealed,
            )
            return msgspec.structs.replace(locked, record=await _again(backup))
    raise NotWanted(unwanted.message)


async def end_needless(backup: UUID) -> None:
    """Ends a backup whose database was dropped by its tenant: there is nothing that a destruction or a restore would
    have to wait for. Does nothing to a backup that has ended."""
    async with transaction():
        locked = await lock(backup)
        if locked.record.under_way:
            await _end(locked, BackupStatus.CANCELLED, ReasonCode.DATABASE_DROPPED)


def why_unwanted(locked: LockedBackup) -> ReasonCode | None:
    """Why the database is not to be dumped, or None. A deleted one is dumped only for its final backup, before its
    destruction; one whose host was lost is not dumped before it is whole on its new host."""
    database = locked.database
    if database is None or database.destruction_began_at is not None or database.destroyed_at is not None:
        return ReasonCode.DATABASE_DELETED
    if database.status is DatabaseStatus.DELETED and locked.record.kind is not BackupKind.FINAL:
        return ReasonCode.DATABASE_DELETED
    return ReasonCode.HOST_LOST if locked.lost else None


async def end_unwanted(locked: LockedBackup, because: ReasonCode) -> None:
    """Ends a backup for a reason such as `why_unwanted` returns: as cancelled, but as failed where its host was lost.
    The database is still there then, and an event tells whoever waited for the backup that there is none."""
    lost = because is ReasonCode.HOST_LOST
    await _end(locked, BackupStatus.FAILED if lost else BackupStatus.CANCELLED, because)


async def end_of_lost_host(database_id: int) -> None:
    """Ends the backups under way of a database that moves to another host, before an attempt could read what lies
    there. One that has dumped something on the lost host is not recorded as completed any more. The database's row must
    be locked."""
    for backup in await records.under_way_of(database_id):
        await break_off(backup, ReasonCode.HOST_LOST)


async def end_of_undeleted(database_id: int) -> None:
    """Ends the final backup under way of a database that is undeleted: nothing is destroyed, and its next deletion asks
    for another final backup. A completed one stays. The database's row must be locked."""
    for backup in await records.under_way_of(database_id, BackupKind.FINAL):
        await break_off(backup, ReasonCode.UNDELETED)


async def end_unattended(database_id: int) -> None:
    """Ends the scheduled backups that wait for a worker, of a database that is closed for a restore: the backup that is
    taken now has the same data. They would keep the tenant shut out for as long as others' dumps take that give way to
    clients. The database's row must be locked."""
    for backup in await records.unattended_of(database_id):
        await break_off(backup, ReasonCode.SUPERSEDED)


async def break_off(backup: UUID, because: ReasonCode) -> None:
    """Ends a backup that nobody needs any more, in the transaction that says why, with its database's row locked. Does
    nothing to one that has ended. Its workflow learns of the end from the row, if not from the signal."""
    locked = await lock(backup)
    if not locked.record.under_way:
        return
    await end_unwanted(locked, because)
    if locked.operation is not None and locked.operation.workflow_id and locked.record.admitted_at is not None:
        await request_signal(KINDS[OperationType.BACKUP].workflow, locked.operation.workflow_id, CANCEL)


async def complete(terms: BackupTerms, manifest: BackupManifest) -> None:
    """Records that the backup is completed: its manifest is in the store. Raises `NotWanted` when its row says by now
    that it has ended otherwise; its objects are removed then."""
    async with transaction():
        locked = await lock(manifest.backup)
        if locked.record.status is BackupStatus.COMPLETED:
            return
        if not locked.record.under_way:
            raise NotWanted(f"the backup is {locked.record.status.value}")
        await execute(
            """
            UPDATE backups SET status = 'completed', format = $2::jsonb, consistent_at = $3, position = $4,
                   size_bytes = $5, stored_bytes = $6, tables = $7, rows = $8, expires_at = $9, completed_at = now(),
                   changed_at = now(), beat_at = NULL, error = NULL
            WHERE uuid = $1
            """,
            manifest.backup,
            msgspec.json.encode(manifest.format).decode(),
            manifest.consistent_at,
            manifest.position,
            manifest.plain_bytes,
            manifest.stored_bytes,
            count_tables(manifest.contents),
            count_rows(manifest.contents),
            manifest.expires_at,
        )
        if locked.database is not None:
            rules = await find_rules(terms.plans, locked.database.id, locked.database.plan)
            if rules.enabled:
                await schedule_tested(terms, locked.database.id, rules)
        await _announce(locked, EventType.BACKUP_COMPLETED)
        if locked.operation is not None:
            await ends.end(locked.operation, OperationStatus.SUCCEEDED)


async def fail(backup: UUID, error: str, because: ReasonCode = ReasonCode.BACKUP_FAILED) -> None:
    """Records that a backup can't be taken. Does nothing to one that has ended. `error` is for its team."""
    async with transaction():
        locked = await lock(backup)
        if locked.record.under_way:
            await _end(locked, BackupStatus.FAILED, because, error=error)


async def is_latest(attempt: BackupRecord) -> bool:
    """Whether no other attempt has begun since. `attempt` is the backup as it was when this attempt began."""
    return await fetch_exists("SELECT 1 FROM backups WHERE uuid = $1 AND attempts = $2", attempt.uuid, attempt.attempts)


async def note_error(attempt: BackupRecord, error: str) -> None:
    """Records what the attempt met, for `give_up`, unless another attempt has begun since."""
    await execute(
        "UPDATE backups SET error = $3 WHERE uuid = $1 AND attempts = $2 AND status IN ('pending', 'running')",
        attempt.uuid,
        attempt.attempts,
        error[:MAX_ERROR],
    )


async def give_up(backup: UUID) -> None:
    """Records that the backup failed: as many attempts have failed as are made."""
    record = await records.find(backup)
    await fail(backup, (record.error if record is not None else None) or "The worker that was at it stopped.")


async def end_attempt(attempt: BackupRecord) -> None:
    """Records that the attempt writes no more, unless another has begun since: what it left in the store can go, if the
    backup has ended."""
    await execute("UPDATE backups SET beat_at = NULL WHERE uuid = $1 AND attempts = $2", attempt.uuid, attempt.attempts)


async def _end(locked: LockedBackup, status: BackupStatus, because: ReasonCode, *, error: str | None = None) -> None:
    await execute(
        "UPDATE backups SET status = $2, error = $3, changed_at = now(), completed_at = NULL WHERE uuid = $1",
        locked.record.uuid,
        status.value,
        (error or because.message)[:MAX_ERROR],
    )
    failed = status is BackupStatus.FAILED
    await _announce(locked, EventType.BACKUP_FAILED if failed else None)
    if locked.operation is not None:
        await ends.end(
            locked.operation, OperationStatus.FAILED if failed else OperationStatus.CANCELLED, because=because
        )


async def _announce(locked: LockedBackup, kind: EventType | None) -> None:
    if kind is not None:
        await append_event(kind, locked.record.uuid)
    await announce(locked.record.database)


async def _again(backup: UUID) -> BackupRecord:
    record = await records.find(backup)
    assert record is not None, "it is locked"
    return record
