"""Taking a backup: a dump streamed into the store, with its manifest last.

Nothing of ours is locked meanwhile. The row is looked at every few seconds, so that a cancellation or a deletion of the
database ends the dump.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec

from app.backups import ends, records
from app.backups.breaking_off import TimeLimit, time_limit, until_over, within
from app.backups.ends import MAX_ERROR
from app.backups.manifests import describe
from app.backups.operation import note_bytes
from app.backups.policies import BackupTerms
from app.backups.records import BackupRecord
from app.backups.retention import BEFORE_CHANGES, keep_until
from app.backups.storage.errors import BackupMissing, BackupStoreError, StoreRefused
from app.backups.storage.keys import BackupKey
from app.backups.storage.manifest import BackupManifest, StoredParts
from app.backups.storage.store import BackupStore
from app.backups.yielding import GivingWay, looking
from app.contracts.backups import BackupStatus
from app.core.secrets import SecretBox
from app.databases import records as databases
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted
from app.engines.base import EngineAdapter, EngineError, HostUnavailable, Tenant
from app.engines.dumping import Content, DatabaseDropped, Dump, DumpRefused
from app.engines.pacing import Pace
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.operations.reasons import ReasonCode
from app.quotas.usage import storage_of
from app.store.session import execute, transaction

_BEAT_SECONDS = 5.0


class BackupTaking:
    """Takes backups; one for each queue that has them."""

    def __init__(
        self,
        terms: BackupTerms,
        box: SecretBox,
        store: BackupStore,
        adapters: Adapters,
        slots: HostSlots,
        limit: TimeLimit = time_limit,
        giving_way: Callable[[Callable[[], bool], float, Callable[[float], None]], GivingWay] = GivingWay,
    ) -> None:
        self._terms = terms
        self._box = box
        self._store = store
        self._adapters = adapters
        self._slots = slots
        self._limit = limit
        self._giving_way = giving_way

    async def take(self, backup: UUID) -> BackupStatus:
        """Takes the backup, and returns how it ended. Raises `NotWanted` when its row says that it is over;
        `EngineError` and `BackupStoreError` when another attempt may succeed."""
        locked = await ends.begin_attempt(backup, self._store.new_key(backup).sealed)
        record = locked.record
        if record.status is BackupStatus.COMPLETED:
            return record.status
        assert locked.database is not None, "its database is still wanted"
        assert record.wrapped_key is not None, "each attempt has one"
        try:
            key = self._store.open_key(backup, record.wrapped_key)
            async with contextlib.AsyncExitStack() as held:
                manifest = await self._find_manifest(record, key)
                if manifest is None:
                    manifest = await self._dump(record, locked.database, key, held)
                else:
                    # That attempt may have died before the store was told to keep it.
                    manifest = await self._store.put_manifest(manifest, key)
                await ends.complete(self._terms, manifest)
        except DumpRefused as refusal:
            # An attempt that was thought dead and this one share the dump's account, and each ends the other's dump:
            # where there was another attempt, only an error that comes twice counts.
            if record.attempts > 1 and record.error != _for_team(refusal):
                await _note_quietly(record, _for_team(refusal))
                raise
            if not await ends.is_latest(record):
                raise NotWanted("another attempt has taken its place") from None
            if isinstance(refusal, DatabaseDropped) and record.kind in BEFORE_CHANGES:
                await ends.end_needless(backup)
            else:
                await ends.fail(backup, _for_team(refusal))
        except NotWanted:
            raise
        except Exception as fault:
            await _note_quietly(record, _for_team(fault))
            raise
        finally:
            await asyncio.shield(_end_quietly(record))
        ended = await records.find(backup)
        assert ended is not None, "rows of backups are kept"
        return ended.status

    async def _find_manifest(self, record: BackupRecord, key: BackupKey) -> BackupManifest | None:
        """The manifest of an earlier attempt whose answer was lost, or None."""
        if record.attempts == 1:
            return None
        try:
            return await self._store.get_manifest(record.uuid, key)
        except BackupMissing:
            return None

    async def _dump(
        self, record: BackupRecord, database: DatabaseRecord, key: BackupKey, held: contextlib.AsyncExitStack
    ) -> BackupManifest:
        """Dumps the database into the store, and returns the manifest that counts. What the dump has open on the host
        is left to `held`: nobody waits for its end."""
        adapter = await self._adapters.of_host(database.host_id)
        expected = await storage_of(database.id)
        limit = self._limit(expected)
        pauses = 0.0 if record.kind in BEFORE_CHANGES else limit
        attempt = _Attempt(expected)
        async with (
            within(limit, DumpRefused) as put_off,
            until_over(
                lambda: _beat(record.uuid, attempt),
                _BEAT_SECONDS,
                backup=record.uuid,
                failure="backup_beat_missed",
            ),
        ):
            tenant = tenant_of(database, self._box)
            pacing = self._pace(adapter, tenant, database.host_id, pauses, put_off, attempt)
            pace = await held.enter_async_context(pacing)
            dump = await held.enter_async_context(adapter.dumping(tenant, pace))
            until = await keep_until(self._terms, record, dump.consistent_at)
            ending = msgspec.structs.replace(record, expires_at=until)
            stored, contents = await self._stream(ending, key, dump, attempt.note_read)
            await dump.let_go()
            # Read again: its logins may have been rotated since.
            now = await databases.find(database.uuid) or database
            manifest = await describe(ending, now, key, self._box, dump=dump, stored=stored, contents=contents)
            if not await _touch(record.uuid):
                return await self._of_another(record.uuid, key)
            return await self._store.put_manifest(manifest, key)

    async def _of_another(self, backup: UUID, key: BackupKey) -> BackupManifest:
        """The manifest of an attempt that was thought dead and has come to its end before this one. Raises `NotWanted`
        when the backup has ended otherwise."""
        now = await records.find(backup)
        if now is None or now.status is not BackupStatus.COMPLETED:
            raise NotWanted("the backup ended meanwhile")
        return await self._store.get_manifest(backup, key)

    @asynccontextmanager
    async def _pace(
        self,
        adapter: EngineAdapter,
        tenant: Tenant,
        host_id: int,
        pauses: float,
        put_off: Callable[[float], None],
        attempt: "_Attempt",
    ) -> AsyncIterator[Pace]:
        """The pace of a dump: full speed where somebody waits for it, in front of a closed database; else the dump
        gives way, and `put_off` keeps its pauses out of its time limit."""
        if not pauses:
            yield Pace()
            return
        async with looking(lambda: adapter.clients_at_work(tenant)) as at_work:

            def is_busy() -> bool:
                return not attempt.awaited and (at_work() or self._slots.is_busy(host_id))

            yield self._giving_way(is_busy, pauses, put_off)

    async def _stream(
        self,
        record: BackupRecord,
        key: BackupKey,
        dump: Dump,
        progress: Callable[[int], None],
    ) -> tuple[StoredParts, list[Content]]:
        """Writes the dump into the store, and reads at the same time what it holds."""
        describing = asyncio.create_task(dump.contents())
        try:
            stored = await self._store.write(record.uuid, key, dump.chunks(), progress=progress)
            return stored, await describing
        finally:
            describing.cancel()
            await asyncio.gather(describing, return_exceptions=True)


class _Attempt:
    """The progress of one attempt, and whether a restore waits for it."""

    def __init__(self, expected_bytes: int) -> None:
        self.expected_bytes = expected_bytes
        self.read_bytes = 0
        self.awaited = False
        """Whether a restore has closed the database to its tenant, and waits for its turn to back it up."""

    def note_read(self, number: int) -> None:
        self.read_bytes = number


async def _beat(backup: UUID, attempt: _Attempt) -> str | None:
    """Reports the attempt's progress; returns why the backup is over, if it is."""
    async with transaction():
        locked = await ends.lock(backup)
        if not locked.record.under_way:
            return f"the backup is {locked.record.status.value}"
        unwanted = ends.why_unwanted(locked)
        if unwanted is not None:
            await ends.end_unwanted(locked, unwanted)
            return unwanted.message
        attempt.awaited = locked.database is not None and locked.database.restoring_at is not None
        await execute("UPDATE backups SET beat_at = now() WHERE uuid = $1", backup)
        if locked.operation is not None:
            await note_bytes(locked.operation, attempt.read_bytes, attempt.expected_bytes)
        return None


async def _touch(backup: UUID) -> bool:
    """Records a sign of life before the manifest is written; False for a backup that has ended."""
    return bool(await execute("UPDATE backups SET beat_at = now() WHERE uuid = $1 AND status = 'running'", backup))


async def _end_quietly(record: BackupRecord) -> None:
    """Ends the attempt. Our own database may be away: the sign of life gets old then."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            await ends.end_attempt(record)


async def _note_quietly(record: BackupRecord, error: str) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            await ends.note_error(record, error)


def _for_team(fault: Exception) -> str:
    """What the backup's team may read of the fault: where the store is, and what failed in the service, is for the
    operator alone."""
    if isinstance(fault, StoreRefused):
        return ReasonCode.BACKUP_STORE_REFUSED.message
    if isinstance(fault, BackupStoreError):
        return ReasonCode.BACKUP_STORE_UNAVAILABLE.message
    if isinstance(fault, HostUnavailable):
        return ReasonCode.HOST_UNAVAILABLE.message
    return str(fault)[:MAX_ERROR] if isinstance(fault, EngineError) else ReasonCode.STEP_FAILED.message
