"""The worker of a region removes from the store what has ended, also of regions that no worker serves any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

from app.backups import records
from app.backups.retention import find_removable
from app.backups.storage.manifest import BackupManifest
from app.backups.storage.store import BackupStore
from app.backups.stored import adopt
from app.provisioning.recovering import restore_stored
from app.quotas.plans import DEFAULT_PLANS
from app.store.notify import RowWatch
from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.backups import BOX, chunks_of, files_of, folder_store, manifest_of
from tests.support.in_process import LoneApi
from tests.support.waiting import ended, until
from workers.backups import remove_ended_backups

SERVED = "us-east-1"
LOST = "us-west-9"


async def kept(store: BackupStore) -> BackupManifest:
    """A backup in the store of a database that was in a region which is lost."""
    backup = uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks_of(b"a dump"))
    return await store.put_manifest(manifest_of(backup, stored, key, region=LOST, plan="free"), key)


@asynccontextmanager
async def removing(store: BackupStore) -> AsyncIterator[None]:
    task = asyncio.create_task(remove_ended_backups(store, SERVED))
    try:
        yield
    finally:
        await ended(task)


async def is_removed(backup: UUID) -> bool:
    record = await records.find(backup)
    return record is not None and record.removed_at is not None


async def test_one_that_was_restored_in_another_region_is_of_that_one(lone: LoneApi, tmp_path: Path) -> None:
    caller, store = await lone.caller(), folder_store(tmp_path)
    backup = (await kept(store)).backup
    await restore_stored(
        store,
        backup,
        team_id=caller.team_id,
        name=None,
        region=SERVED,
        plans=DEFAULT_PLANS,
        box=BOX,
        watch=RowWatch("nothing is waited for"),
    )
    record = await records.find(backup)
    assert record is not None
    assert record.region == SERVED
    await fetch("UPDATE restorations SET ended_at = now()")
    data_of(await caller.delete(f"/backups/{backup}"))
    async with removing(store):
        await until(lambda: is_removed(backup))
    assert files_of(tmp_path) == {}


async def test_those_of_a_region_without_a_host_are_removed_too(lone: LoneApi, tmp_path: Path) -> None:
    caller, store = await lone.caller(), folder_store(tmp_path)
    manifest = await kept(store)
    assert await adopt(manifest, b"key", caller.team_id)
    data_of(await caller.delete(f"/backups/{manifest.backup}"))
    last = await lone.add_host(region=LOST)
    assert await find_removable(SERVED, 10, without=[]) == []
    await fetch("UPDATE engine_hosts SET removed_at = now() WHERE id = $1", last)
    async with removing(store):
        await until(lambda: is_removed(manifest.backup))
    assert files_of(tmp_path) == {}
