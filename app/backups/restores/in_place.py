"""A restore in place: accepted, cancelled, and ended in our own database.

The order keeps the time in which nobody is let in short, and loses nothing that was written before it: the backup is
proven in a scratch database while the tenant works, then access ends, then a backup of what there is by now is taken,
and only then is anything of it touched.
"""

from uuid import UUID

from app.auth.principal import Principal
from app.backups import ends
from app.backups import records as backups
from app.backups.records import BackupRecord
from app.backups.requests import request_backup
from app.backups.restores import records
from app.backups.restores.faults import BackupUnmade
from app.backups.restores.filling import RESTORATIONS
from app.backups.restores.records import NewRestoration, RestorationRecord
from app.backups.retention import check_before_restore, make_room
from app.backups.sources import check_engine, check_host, find_source, with_storage_for
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.base import DatabaseStatus
from app.contracts.queues import restore_workflow_id
from app.contracts.restores import RestorationKind, RestorationOutcome, RestoreDatabase, RestoreDatabaseInput
from app.contracts.retries import CANCEL
from app.core.errors import CapacityExhausted, DatabaseNotActive, RestorationInProgress
from app.core.ids import new_uuid
from app.databases import access
from app.databases import records as databases
from app.databases.records import DatabaseRecord, NotWanted
from app.databases.views import append_event
from app.hosts.loads import loads_of
from app.hosts.records import HostVersion, lock_host, version_of
from app.operations import progress
from app.operations.acceptance import accept
from app.operations.ends import finish
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.operations.records import open_on
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import INTERACTIVE, Accepted, request_signal, request_start
from app.quotas import usage
from app.quotas.bounds import check_bound
from app.quotas.plans import Plans
from app.store.session import transaction
from app.usage.metrics import recording as metrics

NEW_DATABASE_STEPS = ("place", "make")
_UNTOUCHED = (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)


async def accept_in_place(plans: Plans, principal: Principal, database: UUID, backup: UUID) -> Accepted:
    """Accepts a restore in place, in the request's transaction. The subject is the restoration. Raises `NotFound`,
    `BackupNotCompleted`, `BackupIncompatible`, `DatabaseNotActive`, `RestorationInProgress`, `CapacityExhausted`,
    `TooManyUnderWay` or `TeamLimitReached`."""
    found = await databases.get_owned(database, principal.team_ids)
    source = await find_source(principal, backup)
    check_engine(source, found.engine)
    assert found.team_id is not None, "it is one of the caller's teams'"
    await check_bound(plans, RESTORATIONS, found.team_id)
    record = await databases.get_owned(database, principal.team_ids, lock=True)
    if record.status not in _UNTOUCHED:
        raise DatabaseNotActive(record.status.value)
    await expect_none(record)
    # Of a database that isn't whole no backup is taken first.
    if not await backups.is_lost(record.id):
        await check_before_restore(plans, found.team_id, record.uuid)
    host = await version_of(record.host_id)
    check_host(source, flavour=host.flavour, version=host.version)
    await _check_room(record, host, source)
    uuid = new_uuid()
    await records.insert(
        NewRestoration(uuid=uuid, database_id=record.id, kind=RestorationKind.IN_PLACE, backup_uuid=source.uuid)
    )
    await accept(
        OperationType.RESTORE,
        record,
        workflow_id=restore_workflow_id(uuid),
        undo={"restoration": str(uuid)},
        without=NEW_DATABASE_STEPS,
    )
    start = await request_start(
        RestoreDatabase,
        restore_workflow_id(uuid),
        RestoreDatabaseInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            restoration=uuid,
        ),
        priority=INTERACTIVE,
    )
    return Accepted(subject=str(uuid), start=start)


async def expect_none(record: DatabaseRecord) -> None:
    """Raises `RestorationInProgress` while one is under way on a database whose row is locked."""
    if await records.find_open(record.id) is not None:
        raise RestorationInProgress(await _operation_of(record))


async def expect_not_exchanging(record: DatabaseRecord) -> None:
    """The same, once its data is no longer what it was: nothing may happen to it before it is whole again."""
    found = await records.find_open(record.id)
    if found is not None and found.exchanging_at is not None:
        raise RestorationInProgress(await _operation_of(record))


async def end_unfinished(record: DatabaseRecord) -> None:
    """Ends the restoration under way on a database that is about to be deleted, with its row locked. Nothing of its
    data was touched yet."""
    found = await records.find_open(record.id)
    if found is None:
        return
    await records.end(found.uuid, RestorationOutcome.CANCELLED)
    if not await backups.is_lost(record.id):
        await access.forget_closing(record)
    if found.kind is RestorationKind.IN_PLACE:
        await _end_before(found, ReasonCode.DATABASE_DELETED)
        await _stop(found)


async def cancel(record: DatabaseRecord, restoration: UUID) -> bool:
    """Cancels the restoration before anything of the data is touched, with the database's row locked. False where that
    has begun, or the restoration has ended."""
    found = await records.find(restoration, lock=True)
    if found is None or found.ended_at is not None or found.exchanging_at is not None:
        return False
    await records.end(restoration, RestorationOutcome.CANCELLED)
    await reopen(record)
    await _end_before(found, ReasonCode.CANCELLED)
    await _stop(found)
    return True


async def end_on_lost_host(record: DatabaseRecord, found: RestorationRecord) -> None:
    """Ends a restoration whose host is lost, however far it has come, with the database's row locked, in the
    transaction that moves the database. Its workflow learns of that from the row, if not from the signal, and leaves
    the host alone."""
    await records.end(found.uuid, RestorationOutcome.FAILED)
    await _stop(found)
    await finish(record.id, (OperationType.RESTORE,), OperationStatus.FAILED, because=ReasonCode.HOST_LOST)


async def reopen(record: DatabaseRecord) -> None:
    """Reopens the database after a restore in place that has ended without having changed anything, with the database's
    row locked. A database that wasn't whole before stays closed."""
    if not await backups.is_lost(record.id):
        await access.reopen(record)


async def begin_closing(plans: Plans, restoration: UUID) -> DatabaseRecord:
    """Closes the database in its row, which lets nobody in any more, and returns the row. Raises `NotWanted`."""
    async with transaction():
        record, _ = await locked(restoration)
        await progress.begin_step(record.id, OperationType.RESTORE, "end_access")
        await access.close(plans, record)
        return await _reread(record)


async def back_up_first(plans: Plans, restoration: UUID) -> bool:
    """Asks for the backup of what there is, once; returns whether it is completed. Raises `NotWanted`,
    `BackupUnmade`."""
    async with transaction():
        record, found = await locked(restoration)
        if found.before_uuid is None and not await backups.is_lost(record.id):
            await progress.begin_step(record.id, OperationType.RESTORE, "back_up")
            assert record.team_id is not None, "it is a team's"
            await ends.end_unattended(record.id)
            # Without room for it too: nobody is let in any more, and the restore was accepted.
            await make_room(plans, record.team_id, counted=True)
            requested = await request_backup(record, BackupKind.BEFORE_RESTORE)
            await records.note_before(restoration, requested.record.uuid)
            return False
        # At each look: a scheduled one that was being taken may have lost its worker since.
        await ends.end_unattended(record.id)
    return await is_backed_up(found)


async def is_backed_up(found: RestorationRecord) -> bool:
    """Whether what there was is kept, or there was nothing: only in that case is the backup cancelled without its
    restoration. Data that isn't whole, since its host was lost, is not kept. Raises `BackupUnmade` when what there was
    won't be kept."""
    if found.before_uuid is None:
        return await backups.is_lost(found.database_id)
    before = await backups.find(found.before_uuid)
    if before is None or before.status in (BackupStatus.PENDING, BackupStatus.RUNNING):
        return False
    if before.status not in (BackupStatus.COMPLETED, BackupStatus.CANCELLED):
        raise BackupUnmade(f"the backup of what there was is {before.status.value}")
    return True


async def begin_exchange(restoration: UUID) -> tuple[DatabaseRecord, RestorationRecord]:
    """Begins the exchange: from now on nothing cancels the restore, and the database is not deleted. Raises
    `NotWanted`, `BackupUnmade`."""
    async with transaction():
        record, found = await locked(restoration)
        if found.exchanging_at is None and not await is_backed_up(found):
            raise BackupUnmade("what there was is not kept yet")
        await records.begin_exchange(restoration)
        await progress.begin_step(record.id, OperationType.RESTORE, "exchange")
        return record, found


async def note_restored(plans: Plans, restoration: UUID, revision: int) -> None:
    """Records that the database is whole, and that the engine lets in whom its row lets in, at this revision of its
    access."""
    async with transaction():
        record, found = await locked(restoration)
        moved = found.kind is RestorationKind.MOVE
        await records.end(restoration, RestorationOutcome.COMPLETED)
        await append_event(plans, EventType.DATABASE_MOVED if moved else EventType.DATABASE_RESTORED, record.uuid)
        await access.note_reopened(plans, record, revision)
        await usage.forget_growth(record.id)
        # Counters of accounts go on where those of tables began anew, and some of what they count is our own work.
        await metrics.interrupt([record.id])
        await finish(record.id, (OperationType.RESTORE,))


async def locked(restoration: UUID) -> tuple[DatabaseRecord, RestorationRecord]:
    """A live database and its restoration, both locked until the end of the transaction. Raises `NotWanted`."""
    found = await records.find(restoration)
    record = None if found is None else await databases.find_for_update(found.database)
    found = await records.find(restoration, lock=True)
    if record is None or found is None or found.ended_at is not None or record.status not in _UNTOUCHED:
        raise NotWanted("the restoration has ended")
    return record, found


async def _reread(record: DatabaseRecord) -> DatabaseRecord:
    now = await databases.find(record.uuid)
    assert now is not None, "its row is locked"
    return now


async def _operation_of(record: DatabaseRecord) -> UUID | None:
    found = await open_on(record.id, (OperationType.RESTORE, OperationType.CLONE))
    return found[0].uuid if found else None


async def _check_room(record: DatabaseRecord, host: HostVersion, backup: BackupRecord) -> None:
    """Checks that the host has room for the scratch database, beside all that it has allocated."""
    await lock_host(record.host_id)
    (load,) = await loads_of([record.host_id])
    if load.databases >= load.capacity:
        raise CapacityExhausted(
            "The database's host has no room for a copy, in which the backup is proven first.", field="backup_uuid"
        )
    if not await with_storage_for(backup.size_bytes or 0, [host]):
        raise CapacityExhausted(
            "The database's host lacks the storage for a copy, in which the backup is proven first.",
            field="backup_uuid",
        )


async def _end_before(found: RestorationRecord, because: ReasonCode) -> None:
    """Ends the backup of what there is, unless it is completed already: the data stays, so nobody needs it."""
    if found.before_uuid is not None:
        await ends.break_off(found.before_uuid, because)


async def _stop(found: RestorationRecord) -> None:
    """Cancels the restoration's workflow, before its operation ends: the operation names the workflow, which may have
    been begun anew."""
    name = restore_workflow_id(found.uuid)
    for operation in await open_on(found.database_id, (OperationType.RESTORE,)):
        if operation.workflow_id is not None and operation.workflow_id.startswith(name):
            await request_signal("RestoreDatabase", operation.workflow_id, CANCEL)
