"""Running a restore test: the backup is restored by the path that every restore takes, into a database of nobody's,
and compared."""

import asyncio
import contextlib
from datetime import timedelta
from functools import partial
from uuid import UUID

from app.backups import records, restore_tests
from app.backups.breaking_off import TimeLimit, time_limit, until_over, within
from app.backups.policies import BackupTerms
from app.backups.restoring import ContentsDiffer, load_backup
from app.backups.sources import hosts_that_take
from app.backups.storage.errors import (
    BackupDamaged,
    BackupMissing,
    BackupStoreError,
    IdentityNeeded,
    KeyUnknown,
    StoreRefused,
)
from app.backups.storage.store import BackupStore
from app.contracts.backups import ProofStatus, ProveBackupInput
from app.core.secrets import SecretBox
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted
from app.databases.scratch import CONNECTIONS, ScratchPurpose, add_scratch, end_scratch, prolong_scratch
from app.engines.base import EngineAdapter, EngineError, EngineLimits, HostFull, HostUnavailable, NameTaken
from app.engines.dumping import LoadRefused
from app.hosts.adapters import Adapters
from app.hosts.loads import place
from app.operations.reasons import ReasonCode
from app.store.locks import database_lock
from app.store.session import transaction

_LASTING = timedelta(minutes=10)
"""How long a scratch database stays after the last sign of life."""
_BEAT_SECONDS = 15.0
_NO_ROOM = "No host that takes it has room for a restore test."


class RestoreTestRuns:
    """Runs restore tests."""

    def __init__(
        self,
        terms: BackupTerms,
        box: SecretBox,
        store: BackupStore,
        adapters: Adapters,
        limit: TimeLimit = time_limit,
    ) -> None:
        self._terms = terms
        self._box = box
        self._store = store
        self._adapters = adapters
        self._limit = limit

    async def run(self, test: ProveBackupInput) -> ProofStatus:
        """Runs the test until its result is recorded. Raises `NotWanted` when the test is over or the backup is gone;
        `EngineError` and `BackupStoreError` when another attempt may succeed."""
        scratch = None
        try:
            scratch = await self._add_scratch(test)
            await self._restore(test, scratch)
        except NotWanted:
            raise
        except Exception as fault:
            with contextlib.suppress(Exception):
                await restore_tests.note_trouble(test, _for_team(fault))
            raise
        finally:
            if scratch is not None:
                await asyncio.shield(_end_quietly(scratch.uuid))
        ended = await records.find(test.backup)
        assert ended is not None, "rows of backups are kept"
        return ended.proof_status

    async def _add_scratch(self, test: ProveBackupInput) -> DatabaseRecord:
        """Adds a scratch database on a host with room, in place of the one that an attempt that died has left."""
        left = await restore_tests.find_scratch(test.backup)
        if left is not None:
            await end_scratch(left)
        record = await restore_tests.expect_wanted(test)
        assert record.format is not None, "it is completed"
        async with transaction():
            takers = await hosts_that_take(record.format.flavour, record.format.server_version, record.size_bytes or 0)
            host = await place(record.engine, record.region, CONNECTIONS, among=takers)
            if host is None:
                raise HostUnavailable(_NO_ROOM)
            # Locked after the host, as by restores.
            await restore_tests.begin_test(test)
            scratch = await add_scratch(
                self._box,
                ScratchPurpose.PROOF,
                engine=record.engine,
                region=host.region,
                host_id=host.id,
                lasting=_LASTING,
            )
            await restore_tests.keep_scratch(test.backup, scratch)
            return scratch

    async def _restore(self, test: ProveBackupInput, scratch: DatabaseRecord) -> None:
        record = await records.find(test.backup)
        assert record is not None, "rows of backups are kept"
        adapter, tenant = await self._adapters.of_host(scratch.host_id), tenant_of(scratch, self._box)
        try:
            async with (
                within(self._limit(record.size_bytes or 0), LoadRefused),
                until_over(
                    partial(_beat, test, scratch.uuid), _BEAT_SECONDS, backup=test.backup, failure="proof_beat_missed"
                ),
            ):
                await _make(adapter, scratch, self._box)
                report = await load_backup(self._store, record, adapter, tenant)
        except KeyUnknown:
            raise
        except ContentsDiffer as found:
            await _expect_going_on(test, scratch)
            await restore_tests.note_mismatch(self._terms, test, found)
        except (BackupDamaged, BackupMissing, IdentityNeeded, LoadRefused) as fault:
            await self._note_final(test, scratch, fault)
        else:
            await restore_tests.note_proven(self._terms, test, report)

    async def _note_final(self, test: ProveBackupInput, scratch: DatabaseRecord, fault: Exception) -> None:
        """Records a failure that another attempt would meet too, unless the backup was deleted meanwhile, or the
        scratch was."""
        await _expect_going_on(test, scratch)
        await restore_tests.note_failed(self._terms, test, _for_team(fault))


async def _make(adapter: EngineAdapter, scratch: DatabaseRecord, box: SecretBox) -> None:
    """Creates the scratch database, to which nobody is ever let in."""
    tenant = tenant_of(scratch, box)
    async with database_lock(scratch.uuid):
        if not await prolong_scratch(scratch.uuid, _LASTING):
            raise EngineError("the scratch database was removed")
        try:
            await adapter.create(tenant, EngineLimits(connections=CONNECTIONS))
        except NameTaken as fault:
            raise EngineError(str(fault)) from None
        await adapter.revoke_access(tenant)


async def _beat(test: ProveBackupInput, scratch: UUID) -> str | None:
    """Prolongs the scratch database, and returns why the test is over, if it is."""
    wanted = await restore_tests.note_sign_of_life(test) and await prolong_scratch(scratch, _LASTING)
    return None if wanted else "the restore test is over"


async def _expect_going_on(test: ProveBackupInput, scratch: DatabaseRecord) -> None:
    """Raises `NotWanted` when the test is over, or another attempt has taken this one's place and removes the scratch
    database: what this one has found there says nothing of the backup."""
    if (over := await _beat(test, scratch.uuid)) is not None:
        raise NotWanted(over)


async def _end_quietly(scratch: UUID) -> None:
    """Ends the scratch database. Our own database may be away: the scratch is destroyed at its time then."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            await end_scratch(scratch)


def _for_team(fault: Exception) -> str:
    if isinstance(fault, BackupDamaged | IdentityNeeded | LoadRefused):
        return str(fault)
    if isinstance(fault, BackupMissing):
        return "The store has nothing of this backup any more."
    if isinstance(fault, StoreRefused):
        return ReasonCode.BACKUP_STORE_REFUSED.message
    if isinstance(fault, BackupStoreError):
        return ReasonCode.BACKUP_STORE_UNAVAILABLE.message
    if isinstance(fault, HostFull):
        return ReasonCode.HOST_FULL.message
    if isinstance(fault, HostUnavailable):
        return _NO_ROOM if str(fault) == _NO_ROOM else ReasonCode.HOST_UNAVAILABLE.message
    return ReasonCode.STEP_FAILED.message
