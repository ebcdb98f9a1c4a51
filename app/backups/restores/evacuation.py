"""The databases of a lost host are made again on others, each from the backup that has the latest of its data."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from app.backups import ends
from app.backups import records as backups
from app.backups.records import BackupRecord
from app.backups.restores import in_place, records
from app.backups.restores.filling import IN_PLACE_STEPS
from app.backups.restores.in_place import NEW_DATABASE_STEPS
from app.backups.restores.records import NewRestoration, RestorationRecord
from app.backups.sources import hosts_that_take
from app.blueprints.applications import running as applications
from app.contracts.backups import BackupStatus
from app.contracts.base import DatabaseStatus
from app.contracts.queues import restore_workflow_id
from app.contracts.restores import RestorationKind, RestorationOutcome, RestoreDatabase, RestoreDatabaseInput
from app.core.clock import Moment, utc_now
from app.core.ids import new_uuid
from app.databases import records as databases
from app.databases.hosted import live_on
from app.databases.moving import move_lost
from app.databases.pool.eviction import place_with_room_made
from app.databases.records import DatabaseRecord
from app.hosts.changes import drain_host
from app.operations.acceptance import accept
from app.operations.kinds import OperationType
from app.outbox.workflow_starts import NORMAL, request_start
from app.store.session import transaction


class EvacuationStatus(StrEnum):
    MOVING = "moving"
    MOVED = "moved"
    FAILED = "failed"
    """The database stays closed: its backup is damaged, or doesn't load. It is tried again from another backup, once
    the faulty one is deleted."""
    NO_BACKUP = "no_backup"
    """It stays where it is: there is nothing to bring it back from."""
    NO_ROOM = "no_room"
    """No other host of its region takes it. Try again when one does."""


_OUTCOMES = {
    None: EvacuationStatus.MOVING,
    RestorationOutcome.COMPLETED: EvacuationStatus.MOVED,
    RestorationOutcome.FAILED: EvacuationStatus.FAILED,
    RestorationOutcome.CANCELLED: EvacuationStatus.FAILED,
}


class Evacuated(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one database."""

    database: UUID
    name: str
    team: str | None
    status: EvacuationStatus
    host: str
    """`host:port` as it is now."""
    backup: UUID | None
    data_of: Moment | None
    """The moment that its data is of."""
    age_seconds: int | None
    """The seconds since that moment. What was written later is not there."""


async def evacuate(host_id: int) -> list[Evacuated]:
    """Has every live database of the host made again on another host of its region, and nothing placed on it any more.
    May be repeated: what was begun before is reported with the rest. Raises `NotFound`."""
    await drain_host(host_id)
    for database in await live_on(host_id):
        await _move(database, host_id)
    for one in await records.moved_from(host_id):
        if one.outcome is RestorationOutcome.FAILED:
            await _try_again(one)
    moved = [await _report_move(one) for one in await records.moved_from(host_id)]
    return [*moved, *[await _report_stay(database) for database in await live_on(host_id)]]


async def _move(database: UUID, host_id: int) -> None:
    async with transaction():
        record = await databases.find_for_update(database)
        if record is None or record.host_id != host_id or not _is_live(record):
            return
        restoring = await records.find_open(record.id)
        backup = await _find_source(record, restoring)
        if backup is None or backup.format is None:
            return
        hosts = await hosts_that_take(backup.format.flavour, backup.format.server_version, backup.size_bytes or 0)
        # What an earlier move has left on a host may be newer: it isn't emptied for this one.
        others = [one for one in hosts if one != host_id and not await records.is_left_behind(record.uuid, one)]
        place = await place_with_room_made(record.engine, record.region, record.connections, among=others)
        if place is None:
            return
        if restoring is not None:
            await in_place.end_on_lost_host(record, restoring)
        await ends.end_of_lost_host(record.id)
        await applications.end_of_lost_host(record.id)
        await move_lost(record, place.id)
        await _begin(record, backup, record.host_id)


async def _find_source(record: DatabaseRecord, restoring: RestorationRecord | None) -> BackupRecord | None:
    """The backup that the database is to be made again from: the one that a restore under way was to bring, if there is
    one; else the latest that is kept of the database. A backup of what a completed restore has replaced has a later
    moment, and is not that one."""
    if restoring is not None:
        for uuid in (restoring.backup_uuid, restoring.before_uuid):
            found = None if uuid is None else await backups.find(uuid)
            if found is not None and found.status is BackupStatus.COMPLETED:
                return found
    return await backups.find_restored(record.uuid) or await backups.find_newest(record.id)


async def _try_again(failed: RestorationRecord) -> None:
    """Begins anew on the host where the database is by now, if nothing else has made it whole there and there is
    another backup to take."""
    async with transaction():
        record = await databases.find_for_update(failed.database)
        if record is None or not _is_live(record) or await records.find_open(record.id) is not None:
            return
        if not await backups.is_lost(record.id):
            return
        backup = await _find_source(record, None)
        if backup is not None and backup.uuid != failed.backup_uuid and failed.from_host_id is not None:
            await _begin(record, backup, failed.from_host_id)


async def _begin(record: DatabaseRecord, backup: BackupRecord, from_host_id: int) -> None:
    uuid = new_uuid()
    await records.insert(
        NewRestoration(
            uuid=uuid,
            database_id=record.id,
            kind=RestorationKind.MOVE,
            backup_uuid=backup.uuid,
            from_host_id=from_host_id,
        )
    )
    # Its data is elsewhere from now on: nothing goes back.
    await records.begin_exchange(uuid)
    await accept(
        OperationType.RESTORE,
        record,
        workflow_id=restore_workflow_id(uuid),
        without=(*NEW_DATABASE_STEPS, *IN_PLACE_STEPS),
    )
    await request_start(
        RestoreDatabase,
        restore_workflow_id(uuid),
        RestoreDatabaseInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            restoration=uuid,
        ),
        priority=NORMAL,
        relayed=True,
    )


def _is_live(record: DatabaseRecord) -> bool:
    return record.status in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)


async def _report_move(found: RestorationRecord) -> Evacuated:
    record = await databases.find(found.database)
    assert record is not None, "rows of databases with a team are kept"
    backup = None if found.backup_uuid is None else await backups.find(found.backup_uuid)
    status = _OUTCOMES[found.outcome]
    if status is EvacuationStatus.FAILED and not await backups.is_lost(record.id):
        # A later move, or a restore in place, has made it whole.
        status, backup = EvacuationStatus.MOVED, await backups.find_restored(record.uuid)
    return _report(record, status, backup)


async def _report_stay(database: UUID) -> Evacuated:
    record = await databases.find(database)
    assert record is not None, "rows of databases with a team are kept"
    backup = await _find_source(record, await records.find_open(record.id))
    return _report(record, EvacuationStatus.NO_BACKUP if backup is None else EvacuationStatus.NO_ROOM, backup)


def _report(record: DatabaseRecord, status: EvacuationStatus, backup: BackupRecord | None) -> Evacuated:
    moment: datetime | None = None if backup is None else backup.consistent_at
    return Evacuated(
        database=record.uuid,
        name=record.name,
        team=record.team_name,
        status=status,
        host=f"{record.host}:{record.port}",
        backup=None if backup is None else backup.uuid,
        data_of=moment,
        age_seconds=None if moment is None else round((utc_now() - moment).total_seconds()),
    )
