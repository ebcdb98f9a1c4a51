"""The worker of a region removes from the store what interrupted backups left, and asks our records first."""

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from app.backups.storage.store import BackupStore
from app.backups.stored import adopt
from app.store.session import fetch, fetch_scalar
from tests.support.backups import backed_up, chunks_of, folder_store
from tests.support.waiting import until
from workers.stray_objects import serve_stray_objects

LAST = UUID(int=2**128 - 1)
"""In the order of a walk."""


async def interrupted(store: BackupStore, backup: UUID) -> UUID:
    await store.write(backup, store.new_key(backup), chunks_of(b"a dump"))
    return backup


async def recorded(store: BackupStore, folder: Path, team: int, status: str) -> UUID:
    """A backup of that status, of which the store has no manifest."""
    manifest = await backed_up(store, b"a dump")
    assert await adopt(manifest, b"key", team)
    await fetch("UPDATE backups SET status = $2 WHERE uuid = $1", manifest.backup, status)
    (folder / str(manifest.backup) / "manifest").unlink()
    return manifest.backup


async def test_it_goes_unless_our_records_want_it(own_store: None, tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    team = await fetch_scalar(int, "INSERT INTO teams (name, tier) VALUES ('one', 'free') RETURNING id")
    wanted = {await recorded(store, tmp_path, team, status) for status in ("pending", "running", "completed")}
    unwanted = {await recorded(store, tmp_path, team, "failed"), await interrupted(store, LAST)}
    removing = asyncio.create_task(serve_stray_objects(store, timedelta(seconds=-60)))

    def left() -> set[str]:
        # Not by their files: one that is being removed can't be read.
        return {path.name for path in tmp_path.iterdir()}

    try:
        await until(lambda: not {str(one) for one in unwanted} & left())
    finally:
        removing.cancel()
        await asyncio.gather(removing, return_exceptions=True)
    assert left() == {str(one) for one in wanted}
