"""A process that is killed while it writes, a disk that is full, and what a large backup takes of memory."""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from app.backups.storage.errors import StoreUnavailable
from app.backups.storage.store import BackupStore
from app.core.memory import share_arenas
from tests.support.backups import CHUNK, backed_up, chunks_of, files_of, folder_store, manifest_of, restored
from tests.support.waiting import until

GIGABYTE = 1024**3
LARGE = 20 * GIGABYTE
MEMORY = 200 * 1000**2
log = logging.getLogger(__name__)


async def unwanted(_: UUID) -> bool:
    return False


async def test_what_a_killed_writer_leaves_goes(tmp_path: Path) -> None:
    backup = uuid4()
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.backup_store.writer", str(tmp_path), str(backup)
    )
    try:
        # Not read: a part has another name until it is whole.
        await until(lambda: sum(path.suffix == ".age" for path in tmp_path.rglob("*")) >= 3)
    finally:
        writer.kill()
        await writer.wait()
    store = folder_store(tmp_path)
    removed = [item async for item in store.remove_strays(datetime.now(UTC) + timedelta(days=1), unwanted)]
    assert {item.backup for item in removed} == {backup}
    assert files_of(tmp_path) == {}


async def test_a_writer_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    backup, store = uuid4(), folder_store(tmp_path)
    key = store.new_key(backup)
    await store.write(backup, key, chunks_of(b"the attempt of a worker that was killed"))
    stored = await store.write(backup, key, chunks_of(b"a dump"))
    manifest = await store.put_manifest(manifest_of(backup, stored, key), key)
    # A third one, to which nobody told that the second had succeeded.
    late = await store.write(backup, key, chunks_of(b"another dump"))
    assert await store.put_manifest(manifest_of(backup, late, key), key) == manifest
    assert await restored(store, backup) == b"a dump"
    assert len(files_of(tmp_path)) == 3


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        command = ("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder)
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this user can't mount a small disk")
        try:
            yield Path(folder)
        finally:
            subprocess.run(("umount", folder), check=True)


async def test_a_full_disk_is_reported_and_nothing_is_left() -> None:
    with small_disk(24) as folder:
        store, backup = folder_store(folder / "store"), uuid4()
        with pytest.raises(StoreUnavailable, match="No space left"):
            await store.write(backup, store.new_key(backup), chunks_of(os.urandom(40 * CHUNK)))
        assert files_of(folder) == {}
        manifest = await backed_up(store, b"a dump")
        assert await restored(store, manifest.backup) == b"a dump"


async def incompressible(length: int) -> AsyncIterator[bytes]:
    """Pieces of the same random bytes from other places."""
    noise = os.urandom(16 * CHUNK)
    for done in range(0, length, CHUNK):
        start = (done * 7919) % (15 * CHUNK)
        yield noise[start : start + CHUNK]


@pytest.mark.soak
async def test_a_large_backup_takes_little_memory(tmp_path: Path) -> None:
    """20 GB that can't be compressed, written and read, in a process that is set up as a worker's is."""
    share_arenas()
    store, process = folder_store(tmp_path, backup_store_timeout_seconds=600), psutil.Process()
    await written_and_read(store, 64 * CHUNK)  # what the first one loads stays
    rest, most = process.memory_info().rss, 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    try:
        assert await written_and_read(store, LARGE) == LARGE
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    log.info("%s MB above rest", (most - rest) // 10**6)
    assert most - rest < MEMORY


async def written_and_read(store: BackupStore, length: int) -> int:
    backup = uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, incompressible(length))
    manifest = await store.put_manifest(manifest_of(backup, stored, key), key)
    read = 0
    async for step in store.read(manifest, key):
        read += len(step)
    await store.delete(backup)
    return read
