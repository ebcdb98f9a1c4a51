"""The data of a database that nobody can get in to: loaded, and compared with its source."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from uuid import UUID

from app.backups import records as backups
from app.backups.restores import in_place, records
from app.backups.restores.faults import (
    BackupGone,
    DataNotBack,
    ScratchGone,
    SourceBusy,
    SourceGone,
    SourceUnavailable,
    blaming_source,
    of_source,
)
from app.backups.restores.progress import Progress
from app.backups.restores.records import RestorationRecord
from app.backups.restoring import ContentsDiffer, LoadReport, differences, load_backup
from app.backups.storage.errors import BackupDamaged, BackupMissing, KeyUnknown
from app.backups.storage.store import BackupStore
from app.contracts.backups import BackupStatus
from app.contracts.base import DatabaseStatus
from app.contracts.restores import RestorationKind
from app.core.background import repeating
from app.core.secrets import SecretBox
from app.databases import records as databases
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted, expect
from app.databases.scratch import prolong_scratch
from app.engines.base import EngineAdapter, Tenant
from app.engines.dumping import Dump, DumpPurpose, LoadRefused, count_rows, count_tables
from app.hosts.adapters import Adapters
from app.quotas.usage import storage_of
from app.store.locks import LockBusy, LockLost, TransfersLock, database_lock, transfers_lock
from app.store.session import transaction

_NON_RETRYABLE = (BackupDamaged, BackupMissing, BackupGone, ContentsDiffer, LoadRefused)
"""The faults after which no further attempt would load the backup."""
SCRATCH_LASTS = timedelta(days=7)
"""How long a scratch database lasts without a sign of the restoration that needs it."""
_BEAT_SECONDS = 3600.0


class Transfers:
    """Each attempt at a transfer begins from the beginning."""

    def __init__(
        self, box: SecretBox, store: BackupStore, adapters: Adapters, *, beat_seconds: float = _BEAT_SECONDS
    ) -> None:
        """While a scratch is loaded, there is a sign of its restoration every `beat_seconds`."""
        self._box = box
        self._store = store
        self._adapters = adapters
        self._beat_seconds = beat_seconds

    async def fill(self, restoration: UUID, workflow_id: str | None) -> None:
        """Fills a database that is being made or moved, or the scratch of one that is to be restored, and records where
        it is whole. Raises `NotWanted`, what `app.backups.restores.faults` lists, what `load_backup` raises,
        `EngineError`, `LockBusy`, `LockLost`."""
        found = await _open(restoration)
        async with transfers_lock(found.database) as lock:
            if await self._copy(found):
                return
            await _take_turn(lock, found)
            target = await self._begin(restoration)
            if target is None:
                return
            adapter, tenant = await self._adapters.of_host(target.host_id), tenant_of(target, self._box)
            async with self._prolonged(target):
                report = await self._load(found, adapter, tenant, workflow_id)
            await _note_whole(restoration, target, report)

    async def exchange(self, restoration: UUID, workflow_id: str | None) -> None:
        """Gives the closed database of a restore in place the data that was proven in the scratch. Raises as `fill`
        does. When it raises an error that fails the restoration for good, the former data is back."""
        found = await _open(restoration)
        async with transfers_lock(found.database):
            record, found = await in_place.begin_exchange(restoration)
            if found.is_whole_at(record.host_id, record.engine_name):
                return
            adapter = await self._adapters.of_host(record.host_id)
            if adapter.replaces_whole:
                await self._replace(adapter, record, found)
            else:
                await self._reload(adapter, record, found, workflow_id)
            async with transaction():
                await in_place.locked(restoration)
                await records.note_whole(restoration, record.host_id, record.engine_name)

    async def _copy(self, found: RestorationRecord) -> bool:
        """Makes a clone by a copy that the host itself makes in a moment, where the caller lets the source be held up;
        returns whether it is made. The copy is tried once, whatever becomes of it: what it hasn't brought, a dump
        brings. The server copies blocks under its own lock, so nothing is compared."""
        if found.source is None or not found.pause_source or found.held_seconds is not None:
            return False
        async with database_lock(found.database), database_lock(found.source):
            source = await databases.find(found.source)
            target, found = await _target(found.uuid)
            if source is None or source.host_id != target.host_id or not _is_open(source) or _is_whole(found, target):
                return False
            adapter = await self._adapters.of_host(target.host_id)
            if not await adapter.copies_at_once() or not await records.begin_hold(found.uuid):
                return False
            copied = await adapter.copy_database(tenant_of(source, self._box), tenant_of(target, self._box))
            await records.note_held(found.uuid, copied.held_seconds)
            if copied.done:
                await _note_whole(found.uuid, target)
            return copied.done

    async def _begin(self, restoration: UUID) -> DatabaseRecord | None:
        """Empties the target, and returns where it lies. None when it is whole already."""
        found = await _open(restoration)
        async with database_lock(found.database):
            target, found = await _target(restoration)
            if _is_whole(found, target):
                return None
            await self._empty(await self._adapters.of_host(target.host_id), target)
            return target

    def _prolonged(self, target: DatabaseRecord) -> AbstractAsyncContextManager[None]:
        """Keeps a scratch during the block, however long it takes. Nothing happens to any other database."""
        prolong = partial(prolong_scratch, target.uuid, SCRATCH_LASTS)
        return repeating(prolong, self._beat_seconds, failure="scratch_not_prolonged", database=str(target.uuid))

    async def _empty(self, adapter: EngineAdapter, target: DatabaseRecord) -> None:
        # The sessions of an attempt that died: until they have ended it would go on loading.
        await adapter.end_dumps([target.engine_name])
        await adapter.clear(tenant_of(target, self._box))

    async def _load(
        self, found: RestorationRecord, adapter: EngineAdapter, tenant: Tenant, workflow_id: str | None
    ) -> LoadReport:
        if found.source is not None:
            return await self._clone(found.source, adapter, tenant, workflow_id)
        assert found.backup_uuid is not None, "it has one of the two"
        # What a scratch holds becomes the database's own.
        owner = await databases.find(found.database) if found.kind is RestorationKind.IN_PLACE else None
        becomes = None if owner is None else tenant_of(owner, self._box)
        return await self._load_backup(found.backup_uuid, adapter, tenant, workflow_id, becomes=becomes)

    async def _load_backup(
        self,
        backup: UUID,
        adapter: EngineAdapter,
        tenant: Tenant,
        workflow_id: str | None,
        *,
        becomes: Tenant | None = None,
    ) -> LoadReport:
        """Loads the backup into an empty database."""
        record = await backups.find(backup)
        if record is None:
            raise BackupGone("the backup is gone")
        progress = Progress(workflow_id, record.size_bytes or 0)
        async with progress.reported():
            return await load_backup(self._store, record, adapter, tenant, becomes=becomes, through=progress.counted)

    async def _clone(self, source: UUID, adapter: EngineAdapter, tenant: Tenant, workflow_id: str | None) -> LoadReport:
        record = await _source(source)
        progress = Progress(workflow_id, await storage_of(record.id))
        async with self._dump(record) as dump, progress.reported():
            # A restore may have closed and emptied it since its row was read: what is dumped isn't whole then.
            if (await _source(source)).access_revision != record.access_revision:
                raise SourceUnavailable("the database that is cloned was closed or opened when its dump began")
            await adapter.load(tenant, dump.format, progress.counted(of_source(dump.chunks())))
            with blaming_source():
                dumped = await dump.contents()
        found = await adapter.contents(tenant)
        if differing := differences(dumped, found):
            # Another attempt has another dump.
            raise SourceUnavailable(f"the copy differs in {len(differing)} objects")
        return LoadReport(tables=count_tables(found), rows=count_rows(found), seconds=progress.seconds)

    @asynccontextmanager
    async def _dump(self, record: DatabaseRecord) -> AsyncIterator[Dump]:
        async with AsyncExitStack() as stack:
            with blaming_source():
                adapter = await self._adapters.of_host(record.host_id)
                dump = await stack.enter_async_context(
                    adapter.dumping(tenant_of(record, self._box), purpose=DumpPurpose.CLONE)
                )
            yield dump

    async def _replace(self, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord) -> None:
        """Replaces the whole database at once by its scratch."""
        scratch = await _scratch_of(found)
        async with database_lock(record.uuid), database_lock(scratch.uuid):
            await _open(found.uuid)  # after the wait for the locks it may be too late
            await adapter.end_dumps([record.engine_name])
            tenant = tenant_of(record, self._box)
            await adapter.revoke_access(tenant)
            await adapter.replace(tenant, tenant_of(scratch, self._box))

    async def _reload(
        self, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord, workflow_id: str | None
    ) -> None:
        """Empties the database and loads the backup; where the backup doesn't load here after all, loads back what
        there was."""
        assert found.backup_uuid is not None, "a restore in place has a backup"
        try:
            await self._load_anew(adapter, record, found, found.backup_uuid, workflow_id)
        except KeyUnknown:
            raise
        except _NON_RETRYABLE:
            await self._load_back(adapter, record, found, workflow_id)
            raise

    async def _load_back(
        self, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord, workflow_id: str | None
    ) -> None:
        before = found.before_uuid
        kept = None if before is None else await backups.find(before)
        if before is None or (kept is not None and kept.status is BackupStatus.CANCELLED):  # there was nothing whole
            await self._empty_closed(adapter, record, found)
            return
        try:
            await self._load_anew(adapter, record, found, before, workflow_id)
        except _NON_RETRYABLE as fault:
            raise DataNotBack(f"what there was can't be loaded back from the backup {before}: {fault}") from None

    async def _load_anew(
        self,
        adapter: EngineAdapter,
        record: DatabaseRecord,
        found: RestorationRecord,
        backup: UUID,
        workflow_id: str | None,
    ) -> None:
        await self._empty_closed(adapter, record, found)
        await self._load_backup(backup, adapter, tenant_of(record, self._box), workflow_id)

    async def _empty_closed(self, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord) -> None:
        """Empties the database for a load. Raises `LockLost` where another attempt has made it whole, because this one
        stopped for so long that its lock went: the next one finds that it is done."""
        async with database_lock(record.uuid):
            if (await _open(found.uuid)).is_whole_at(record.host_id, record.engine_name):
                raise LockLost("another attempt has made the database whole")
            await adapter.revoke_access(tenant_of(record, self._box))
            await self._empty(adapter, record)


async def _take_turn(lock: TransfersLock, found: RestorationRecord) -> None:
    """Takes the turn of a clone among those of one database, whose dumps share an account, before anything is emptied
    for it. Raises `SourceBusy`."""
    if found.source is None:
        return
    try:
        await lock.keep_clones_waiting(found.source)
    except LockBusy:
        raise SourceBusy("another clone of the database is being made") from None


async def _source(source: UUID) -> DatabaseRecord:
    """The database that is cloned. Raises `SourceGone`; `SourceUnavailable` while it is not whole."""
    record = await databases.find(source)
    if record is None or record.status is DatabaseStatus.DELETED:
        raise SourceGone("the database that is cloned was deleted")
    if record.restoring_at is not None:
        raise SourceUnavailable("the database that is cloned is being restored itself")
    return record


async def _open(restoration: UUID) -> RestorationRecord:
    """The restoration. Raises `NotWanted` for one that has ended."""
    found = await records.find(restoration)
    if found is None or found.ended_at is not None:
        raise NotWanted("the restoration has ended")
    return found


async def _target(restoration: UUID) -> tuple[DatabaseRecord, RestorationRecord]:
    """The database that is filled, and its restoration. Raises `NotWanted`."""
    found = await _open(restoration)
    record = await databases.find(found.database)
    if found.kind in (RestorationKind.FROM_BACKUP, RestorationKind.CLONE):
        return expect(record, DatabaseStatus.PROVISIONING), found
    record = expect(record, DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
    return (await _scratch_of(found), found) if found.kind is RestorationKind.IN_PLACE else (record, found)


async def _scratch_of(found: RestorationRecord) -> DatabaseRecord:
    """The restoration's scratch database, prolonged. Raises `ScratchGone`."""
    scratch = None if found.scratch is None else await databases.find(found.scratch)
    if scratch is None or not await prolong_scratch(scratch.uuid, SCRATCH_LASTS):
        raise ScratchGone("the scratch database is gone")
    return scratch


def _is_whole(found: RestorationRecord, target: DatabaseRecord) -> bool:
    # In place: once the exchange is done, the scratch has what there was.
    in_exchange = found.kind is RestorationKind.IN_PLACE and found.exchanging_at is not None
    return in_exchange or found.is_whole_at(target.host_id, target.engine_name)


def _is_open(source: DatabaseRecord) -> bool:
    """Whether its tenant is let in, and nothing else happens to it."""
    return source.status is DatabaseStatus.ACTIVE and source.restoring_at is None


async def _note_whole(restoration: UUID, target: DatabaseRecord, report: LoadReport | None = None) -> None:
    async with transaction():
        now, found = await _target(restoration)
        if now.placement != target.placement:
            raise NotWanted("the database is made elsewhere by now")
        if _is_whole(found, now):
            return
        tables, rows = (None, None) if report is None else (report.tables, report.rows)
        await records.note_whole(restoration, now.host_id, now.engine_name, tables=tables, rows=rows)
