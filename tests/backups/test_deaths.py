"""An attempt that dies at any point: what is called completed restores, and nothing of the others stays."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.backups import ends, records, restore_tests
from app.backups.operation import mark_cancelled
from app.backups.records import BackupRecord
from app.backups.restore_test_runs import RestoreTestRuns
from app.backups.retention import remove
from app.backups.storage.errors import StoreUnavailable
from app.backups.storage.keys import BackupKey
from app.backups.storage.manifest import BackupManifest, StoredParts
from app.backups.storage.store import BackupStore
from app.backups.taking import BackupTaking
from app.contracts.backups import BackupKind, BackupStatus, ProofStatus, ProveBackupInput
from app.core.clock import utc_now
from app.core.settings import Settings
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted
from app.databases.scratch import end_scratch
from app.engines.base import HostUnavailable
from app.engines.dumping import DumpRefused
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.locks import database_lock
from app.store.session import fetch, transaction
from tests.backups.support import TERMS, add_backup, database_row, status_of
from tests.backups.test_taking import filled
from tests.e2e.hosts import postgres
from tests.support.answers import data_of
from tests.support.backups import files_of
from tests.support.client import Caller
from tests.support.meeting import rows_held
from tests.support.service import RunningService
from tests.support.store import store as connected_store
from tests.support.waiting import until
from workers.stray_objects import remove_stray_objects

_WAITING_FOR_HOSTS = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    " AND query LIKE '%engine_hosts%'"
)


class Died(BaseException):
    """As a process does: nothing that it would do about an error happens."""


class FrailStore(BackupStore):
    """Dies, or fails, where it is told to."""

    at: str = ""
    begun: Callable[[], Any] | None = None
    written: Callable[[], Any] | None = None
    puts: int = 0
    """Calls of `put_manifest`."""

    async def write(
        self,
        backup: UUID,
        key: BackupKey,
        chunks: AsyncIterator[bytes],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> StoredParts:
        if self.at == "no store":
            raise StoreUnavailable("s3://a-secret-bucket answered 503")
        if self.begun is not None:
            begun, self.begun = self.begun, None
            await begun()
        stored = await super().write(backup, key, chunks, progress=progress)
        if self.written is not None:
            await self.written()
        if self.at == "before the manifest":
            raise Died
        return stored

    async def put_manifest(self, manifest: BackupManifest, key: BackupKey) -> BackupManifest:
        self.puts += 1
        put = await super().put_manifest(manifest, key)
        if self.at == "after the manifest":
            raise Died
        return put


class Scene:
    """One database on the service's own host, and a store of the test's own."""

    def __init__(self, service: RunningService, adapters: Adapters, folder: Path, database: DatabaseRecord) -> None:
        settings = Settings(backup_store=folder.as_uri(), backup_store_timeout_seconds=20)
        self.folder = folder
        self.box = service.box
        self.adapters = adapters
        self.store = FrailStore.from_settings(settings, service.box)
        assert isinstance(self.store, FrailStore)
        self.taking = BackupTaking(TERMS, service.box, self.store, adapters, HostSlots())
        self.restore_tests = RestoreTestRuns(TERMS, service.box, self.store, adapters)
        self.database = database

    async def begun(self, kind: BackupKind = BackupKind.MANUAL) -> UUID:
        """A backup whose turn it is, and of which no workflow knows."""
        return await add_backup(
            self.database, kind=kind, status=BackupStatus.PENDING, admitted_at=utc_now(), consistent_at=None
        )

    async def dies(self, backup: UUID, at: str) -> None:
        self.frail.at = at
        with pytest.raises(Died):
            await self.taking.take(backup)
        self.frail.at = ""

    @property
    def frail(self) -> FrailStore:
        assert isinstance(self.store, FrailStore)
        return self.store

    async def proven(self, backup: UUID) -> BackupRecord:
        """What a restore test makes of it."""
        async with transaction():
            record = await records.find_for_update(backup)
            assert record is not None
            number = (await restore_tests.request_test(TERMS, record)).number
            # No workflow of the service's is to take part.
            await fetch("DELETE FROM workflow_starts WHERE workflow = 'ProveBackup'")
        test = ProveBackupInput(
            database=record.database,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            backup=backup,
            number=number,
        )
        await self.restore_tests.run(test)
        found = await records.find(backup)
        assert found is not None
        return found

    def kept(self, backup: UUID) -> list[str]:
        return [name for name in files_of(self.folder) if str(backup) in name]


@pytest.fixture
async def scene(service: RunningService, caller: Caller, tmp_path: Path) -> AsyncIterator[Scene]:
    made = await filled(caller)
    # The service's own worker would look for the backup in the service's own store, to prove it.
    data_of(await caller.patch(f"/databases/{made['uuid']}/backup_policy", {"enabled": False}))
    adapters = Adapters(service.box)
    async with connected_store(service.control_dsn):
        try:
            yield Scene(service, adapters, tmp_path / "backups", await database_row(made["uuid"]))
        finally:
            await adapters.close()


@pytest.mark.parametrize("at", ["before the manifest", "after the manifest"])
async def test_the_next_attempt_goes_on(scene: Scene, at: str) -> None:
    backup = await scene.begun()
    await scene.dies(backup, at)
    assert await status_of(backup) == "running"
    first = await records.find(backup)
    assert first is not None
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    record = await scene.proven(backup)
    assert (record.proof_status, record.proof_rows, record.attempts) == (ProofStatus.PROVEN, 100, 2)
    # A repetition whose first answer was lost changes nothing.
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    assert (await records.find(backup)) is not None
    events = await fetch("SELECT type FROM events WHERE payload -> 'data' ->> 'uuid' = $1 ORDER BY id", str(backup))
    assert [row["type"] for row in events] == ["backup.completed", "backup.proven"]


async def test_what_was_written_is_not_dumped_again(scene: Scene) -> None:
    backup = await scene.begun()
    await scene.dies(backup, "after the manifest")
    parts = scene.kept(backup)
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    assert set(scene.kept(backup)) == set(parts)
    assert scene.frail.puts == 2, "the store may not have been told to keep it"


@pytest.mark.parametrize("at", ["before the manifest", "after the manifest"])
async def test_one_that_is_cancelled_leaves_nothing(scene: Scene, at: str) -> None:
    backup = await scene.begun()
    await scene.dies(backup, at)
    assert await mark_cancelled(backup)
    with pytest.raises(NotWanted):
        await scene.taking.take(backup)
    assert scene.kept(backup)
    await remove(scene.store, backup)
    assert scene.kept(backup) == []
    assert await status_of(backup) == "cancelled"


async def test_a_cancellation_while_it_streams(scene: Scene) -> None:
    backup = await scene.begun()
    scene.frail.written = lambda: mark_cancelled(backup)
    with pytest.raises(NotWanted):
        await scene.taking.take(backup)
    await remove(scene.store, backup)
    assert (scene.kept(backup), await status_of(backup)) == ([], "cancelled")


async def test_two_attempts_at_once(scene: Scene) -> None:
    backup = await scene.begun()
    takes = [scene.taking.take(backup), scene.taking.take(backup)]
    both = await asyncio.gather(*takes, return_exceptions=True)
    # Each may have ended the dump of the other; then the workflow tries again.
    assert all(isinstance(one, NotWanted | DumpRefused | HostUnavailable | BackupStatus) for one in both), both
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    # What the other one has written is nobody's, and goes.
    manifest = await scene.store.get_manifest(backup)
    await remove_stray_objects(scene.store, utc_now() + timedelta(minutes=1))
    assert len([name for name in scene.kept(backup) if "/parts/" in name]) == len(manifest.parts)
    assert (await scene.proven(backup)).proof_status is ProofStatus.PROVEN


async def test_a_store_that_is_away_is_tried_again(scene: Scene) -> None:
    backup = await scene.begun()
    scene.frail.at = "no store"
    with pytest.raises(StoreUnavailable):
        await scene.taking.take(backup)
    record = await records.find(backup)
    assert record is not None
    assert (record.status, record.beat_at) == (BackupStatus.RUNNING, None)
    assert "store of backups" in (record.error or "")
    assert "secret" not in (record.error or "")
    scene.frail.at = ""
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    record = await records.find(backup)
    assert record is not None
    assert record.error is None


async def test_a_restore_test_locks_its_backup_after_the_hosts(scene: Scene, service: RunningService) -> None:
    """As restores do: else one of two that meet would be ended by the server."""
    backup = await scene.begun()
    await scene.taking.take(backup)
    async with rows_held(service.control_dsn, "engine_hosts") as holder:
        proving = asyncio.create_task(scene.proven(backup))
        await until(lambda: fetch(_WAITING_FOR_HOSTS))
        await holder.execute("SELECT 1 FROM backups WHERE uuid = $1 FOR SHARE", backup)
    assert (await proving).proof_status is ProofStatus.PROVEN


async def test_one_that_takes_too_long_fails_and_gives_up_its_place(scene: Scene) -> None:
    backup = await scene.begun()
    await scene.taking.take(backup)
    scene.restore_tests = RestoreTestRuns(TERMS, scene.box, scene.store, scene.adapters, limit=lambda size: 0)
    record = await scene.proven(backup)
    assert record.proof_status is ProofStatus.FAILED
    assert "took longer than" in (record.proof_error or "")
    slow = await scene.begun()
    taking = BackupTaking(TERMS, scene.box, scene.store, scene.adapters, HostSlots(), limit=lambda size: 0)
    assert await taking.take(slow) is BackupStatus.FAILED
    ended = await records.find(slow)
    assert ended is not None
    assert "took longer than" in (ended.error or "")


async def test_one_that_is_given_up_says_why(scene: Scene) -> None:
    backup = await scene.begun()
    scene.frail.at = "no store"
    with pytest.raises(StoreUnavailable):
        await scene.taking.take(backup)
    await ends.give_up(backup)
    record = await records.find(backup)
    assert record is not None
    assert record.status is BackupStatus.FAILED
    assert "store of backups" in (record.error or "")


async def test_a_database_that_is_deleted_meanwhile(scene: Scene) -> None:
    backup, final = await scene.begun(), await scene.begun(BackupKind.FINAL)
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", scene.database.uuid)
    try:
        with pytest.raises(NotWanted):
            await scene.taking.take(backup)
        # The one before its destruction is taken all the same.
        assert await scene.taking.take(final) is BackupStatus.COMPLETED
    finally:
        await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", scene.database.uuid)
    record = await records.find(backup)
    assert record is not None
    assert (record.status, record.error) == (
        BackupStatus.CANCELLED,
        "The database was deleted before it had ended.",
    )


@pytest.mark.parametrize("what", ["paused", "frozen", "rotated"])
async def test_a_database_that_changes_meanwhile(scene: Scene, caller: Caller, what: str) -> None:
    """One that is paused in the middle is dumped again, closed as it is."""
    backup = await scene.begun()
    adapter, tenant = await scene.adapters.of_host(scene.database.host_id), tenant_of(scene.database, scene.box)
    path = f"/databases/{scene.database.uuid}/credential_rotations"

    async def rotate() -> None:
        data_of(await caller.post(path, {"overlap_seconds": 0}))

    scene.frail.begun = {
        "paused": lambda: adapter.revoke_access(tenant),
        "frozen": lambda: adapter.freeze(tenant),
        "rotated": rotate,
    }[what]
    with contextlib.suppress(HostUnavailable):  # then the workflow tries again
        await scene.taking.take(backup)
    assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    proven = await scene.proven(backup)
    assert (proven.proof_status, proven.proof_error, proven.proof_differences) == (ProofStatus.PROVEN, None, [])
    await adapter.restore_access(tenant)


async def test_a_proof_that_dies_leaves_no_scratch_for_long(scene: Scene) -> None:
    backup = await scene.begun()
    await scene.taking.take(backup)
    proven = await scene.proven(backup)
    assert proven.proof_status is ProofStatus.PROVEN
    [scratch] = await fetch("SELECT uuid, destroy_at <= now() AS ended FROM databases WHERE id = $1", proven.scratch_id)
    assert scratch["ended"]


def forged(manifest: BackupManifest) -> BackupManifest:
    """It has one row more in each of its tables."""
    contents = [msgspec.structs.replace(one, rows=one.rows + 1) for one in manifest.contents]
    return msgspec.structs.replace(manifest, contents=tuple(contents))


async def test_what_came_back_otherwise_is_reported(scene: Scene) -> None:
    backup = await scene.begun()
    made: list[BackupManifest] = []

    class Forger(FrailStore):
        async def put_manifest(self, manifest: BackupManifest, key: BackupKey) -> BackupManifest:
            made.append(forged(manifest))
            return await super().put_manifest(made[0], key)

    scene.frail.__class__ = Forger
    await scene.taking.take(backup)
    record = await scene.proven(backup)
    assert record.proof_status is ProofStatus.MISMATCH
    found = {one["name"]: (one["expected_rows"], one["restored_rows"]) for one in record.proof_differences}
    assert (101, 100) in found.values()
    [event] = await fetch(
        "SELECT type FROM events WHERE payload -> 'data' ->> 'uuid' = $1 ORDER BY id DESC LIMIT 1", str(backup)
    )
    assert event["type"] == "backup.mismatch"


async def test_an_attempt_that_was_replaced_reports_no_difference(scene: Scene) -> None:
    """The next one has ended its scratch database."""
    backup = await scene.begun()
    await scene.taking.take(backup)
    async with contextlib.AsyncExitStack() as held:

        class Replaced(FrailStore):
            async def get_manifest(self, backup: UUID, key: BackupKey | None = None) -> BackupManifest:
                scratch = await restore_tests.find_scratch(backup)
                assert scratch is not None
                # What is there stays until it is compared.
                await held.enter_async_context(database_lock(scratch))
                await end_scratch(scratch)
                return forged(await super().get_manifest(backup, key))

        scene.frail.__class__ = Replaced
        with pytest.raises(NotWanted, match="the restore test is over"):
            await scene.proven(backup)
    record = await records.find(backup)
    assert record is not None
    assert record.proof_status is ProofStatus.RUNNING
    scene.frail.__class__ = FrailStore
    assert (await scene.proven(backup)).proof_status is ProofStatus.PROVEN


async def test_a_backup_that_was_damaged_is_no_proof(scene: Scene) -> None:
    backup = await scene.begun()
    await scene.taking.take(backup)
    [part] = [name for name in scene.kept(backup) if name.endswith(".age")]
    path = scene.folder / part
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    record = await scene.proven(backup)
    assert record.proof_status is ProofStatus.FAILED
    assert part in (record.proof_error or "")


async def test_the_data_is_of_one_moment(scene: Scene, caller: Caller) -> None:
    """A tenant who writes while it is dumped."""
    string = (await caller.get(f"/databases/{scene.database.uuid}")).json()["data"]["connection_string"]
    backup = await scene.begun()
    writing = True

    async def write() -> None:
        async with postgres(string) as connection:
            while writing:
                await connection.execute("INSERT INTO notes (text) SELECT 'more' FROM generate_series(1, 50)")
                await asyncio.sleep(0)

    writer = asyncio.create_task(write())
    try:
        assert await scene.taking.take(backup) is BackupStatus.COMPLETED
    finally:
        writing = False
        await writer
    record = await scene.proven(backup)
    assert record.proof_status is ProofStatus.PROVEN
    assert (record.rows or 0) % 50 == 0


async def test_what_no_dump_carries_fails_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    backup = await scene.begun()
    adapter = await scene.adapters.of_host(scene.database.host_id)

    def refuse(*_: object) -> object:
        raise DumpRefused("the table notes has a column that no dump carries")

    monkeypatch.setattr(adapter, "dumping", refuse)
    assert await scene.taking.take(backup) is BackupStatus.FAILED
    record = await records.find(backup)
    assert record is not None
    assert record.error == "the table notes has a column that no dump carries"


async def test_an_undeletion_while_the_final_one_streams(scene: Scene, caller: Caller) -> None:
    uuid = scene.database.uuid
    data_of(await caller.delete(f"/databases/{uuid}"))
    final = await scene.begun(BackupKind.FINAL)
    scene.frail.written = lambda: undelete(DEFAULT_PLANS, uuid)
    with pytest.raises(NotWanted):
        await scene.taking.take(final)
    await remove(scene.store, final)
    assert (scene.kept(final), await status_of(final)) == ([], "cancelled")


async def test_an_undeletion_between_two_attempts_at_the_final_one(scene: Scene, caller: Caller) -> None:
    """The manifest is in the store, and nothing says so yet."""
    uuid = scene.database.uuid
    data_of(await caller.delete(f"/databases/{uuid}"))
    final = await scene.begun(BackupKind.FINAL)
    await scene.dies(final, "after the manifest")
    data_of(await caller.post(f"/databases/{uuid}/undeletions", None))
    with pytest.raises(NotWanted):
        await scene.taking.take(final)
    await remove(scene.store, final)
    assert (scene.kept(final), await status_of(final)) == ([], "cancelled")
