"""What interrupted writes and deletions leave behind goes, and nothing else does."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.backups.storage.errors import BackupMissing
from app.backups.storage.store import BackupStore, StoredBackup
from tests.support.backups import backed_up, chunks_of, files_of, folder_store, manifest_of, restored

LATER = datetime.now(UTC) + timedelta(days=1)
EARLIER = datetime.now(UTC) - timedelta(days=1)


async def unwanted(backup: UUID) -> bool:
    return False


async def removed(store: BackupStore, before: datetime = LATER) -> list[UUID | None]:
    return [item.backup async for item in store.remove_strays(before, unwanted)]


async def interrupted(store: BackupStore) -> UUID:
    backup = uuid4()
    await store.write(backup, store.new_key(backup), chunks_of(b"a dump"))
    return backup


async def test_what_has_no_manifest_goes(any_store: BackupStore) -> None:
    stray, whole = await interrupted(any_store), await backed_up(any_store, b"whole")
    assert await removed(any_store, EARLIER) == []
    assert await removed(any_store) == [stray]
    assert await removed(any_store) == []
    assert [item.backup async for item in any_store.walk()] == [whole.backup]
    assert await restored(any_store, whole.backup) == b"whole"


async def test_what_is_being_written_stays(any_store: BackupStore) -> None:
    under_way, stray = await interrupted(any_store), await interrupted(any_store)

    async def wanted(backup: UUID) -> bool:
        return backup == under_way

    assert [item.backup async for item in any_store.remove_strays(LATER, wanted)] == [stray]
    assert [item.backup async for item in any_store.walk()] == [under_way]


async def test_earlier_attempts_go_with_the_manifest_of_another(any_store: BackupStore) -> None:
    backup = uuid4()
    key = any_store.new_key(backup)
    await any_store.write(backup, key, chunks_of(b"the first attempt"))
    stored = await any_store.write(backup, key, chunks_of(b"the second attempt"))
    await any_store.put_manifest(manifest_of(backup, stored, key), key)
    [found] = [item async for item in any_store.walk() if isinstance(item, StoredBackup)]
    assert len(found.objects) == 3
    assert await restored(any_store, backup) == b"the second attempt"


async def test_an_interrupted_deletion_is_completed(tmp_path: Path) -> None:
    manifest = await backed_up(folder_store(tmp_path), b"a dump")
    (tmp_path / str(manifest.backup) / "manifest").unlink()  # as far as a deletion may get
    with pytest.raises(BackupMissing):
        await folder_store(tmp_path).get_manifest(manifest.backup)
    assert set(await removed(folder_store(tmp_path))) == {manifest.backup}
    assert files_of(tmp_path) == {}


async def test_a_file_that_was_being_written_in_a_crash_goes(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    whole = await backed_up(store, b"whole")
    lost = tmp_path / str(uuid4()) / "parts" / "0011223344556677"
    lost.mkdir(parents=True)
    (lost / "00000000.zst.age#1").write_bytes(b"half")
    assert len(await removed(store)) == 1
    assert [item.backup async for item in store.walk()] == [whole.backup]

    (tmp_path / str(whole.backup) / "manifest#1").write_bytes(b"half")
    await store.delete(whole.backup)
    assert files_of(tmp_path) == {}


async def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "of somebody").write_bytes(b"1")
    (tmp_path / "a file").write_bytes(b"2")
    assert await removed(store) == []
    assert sorted(files_of(tmp_path)) == ["a file", "notes/of somebody"]
    assert sorted([getattr(item, "name", "") async for item in store.walk()]) == ["a file", "notes/of somebody"]


async def test_a_backup_that_cannot_be_read_loses_nothing(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    manifest = await backed_up(store, b"a dump")
    (tmp_path / str(manifest.backup) / "manifest").write_bytes(b"damaged")
    assert await removed(store) == []
    assert len(files_of(tmp_path)) == 3
