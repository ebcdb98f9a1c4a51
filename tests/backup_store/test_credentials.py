"""The store's credentials are replaced while a backup is written or read."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.backups.storage.errors import StoreRefused
from app.backups.storage.manifest import BackupManifest
from app.backups.storage.parts import PART_BYTES
from app.backups.storage.store import BackupStore, StoredBackup
from app.core.settings import InvalidSettings
from tests.backup_store.conftest import BucketOfTest
from tests.support.backups import backed_up, chunks_of, manifest_of, random_dump, restored
from tests.support.waiting import until

DUMP = random_dump(2 * PART_BYTES + 1000)
"""Of several parts."""
OLD, NEW = "the-old-key", "the-new-key"


def written(file: Path, key: str, profile: str = "default") -> None:
    hold(file, f"[{profile}]\naws_access_key_id = {key}\naws_secret_access_key = 50%\n")


def hold(file: Path, text: str | None) -> None:
    """None: there is no such file."""
    if text is None:
        file.unlink()
    else:
        file.write_text(text)


@pytest.fixture
def file(bucket: BucketOfTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the old key, the only one that the bucket's server takes."""
    made = tmp_path / "credentials"
    written(made, OLD)
    bucket.way.keys = {OLD}
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(made))
    return made


async def when_some_is_written(bucket: BucketOfTest) -> AsyncIterator[bytes | None]:
    """The dump, with None once between two of its chunks: then a part of it has been sent."""
    async for chunk in chunks_of(DUMP[: 2 * PART_BYTES]):
        yield chunk
    await until(lambda: bool(bucket.way.signers))
    yield None
    async for chunk in chunks_of(DUMP[2 * PART_BYTES :]):
        yield chunk


async def put(store: BackupStore, backup: UUID, chunks: AsyncIterator[bytes]) -> BackupManifest:
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks)
    return await store.put_manifest(manifest_of(backup, stored, key), key)


async def test_a_backup_goes_on_with_those_that_come_in_the_middle(bucket: BucketOfTest, file: Path) -> None:
    async def dump() -> AsyncIterator[bytes]:
        async for chunk in when_some_is_written(bucket):
            if chunk is None:
                written(file, NEW)
                # What is on its way was signed before.
                bucket.way.keys = {OLD, NEW}
            else:
                yield chunk

    store, backup = bucket.store(), uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, dump())
    assert bucket.way.signers[-1] == NEW
    bucket.way.keys = {NEW}
    await store.put_manifest(manifest_of(backup, stored, key), key)
    read, parts = bytearray(), store.read(await store.get_manifest(backup), key)
    async for step in parts:
        read += step
        written(file, OLD)
        bucket.way.keys = {OLD}
    assert read == DUMP


async def test_without_new_ones_it_says_so_and_the_next_attempt_leaves_nothing_else(
    bucket: BucketOfTest, file: Path
) -> None:
    async def dump() -> AsyncIterator[bytes]:
        async for chunk in when_some_is_written(bucket):
            if chunk is None:
                bucket.way.keys = {NEW}
            else:
                yield chunk

    store, backup = bucket.store(), uuid4()
    with pytest.raises(StoreRefused, match="InvalidAccessKeyId"):
        await put(store, backup, dump())
    written(file, NEW)
    manifest = await put(store, backup, chunks_of(DUMP))
    assert await restored(store, backup) == DUMP
    [whole] = [item async for item in store.walk()]
    assert isinstance(whole, StoredBackup)
    assert len(whole.objects) == len(manifest.parts) + 2, "the key and the manifest"


async def test_a_profile_of_the_file(bucket: BucketOfTest, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(file, OLD, profile="headwater")
    monkeypatch.setenv("AWS_PROFILE", "headwater")
    store = bucket.store()
    assert await restored(store, (await backed_up(store, b"a dump")).backup) == b"a dump"


@pytest.mark.parametrize("text", ["", "[other]\naws_access_key_id = a\n", "[default]\naws_access_key_id = a\n", "\0"])
async def test_a_file_without_them_is_named(bucket: BucketOfTest, file: Path, text: str) -> None:
    store = bucket.store()
    hold(file, text)
    with pytest.raises(StoreRefused, match="AWS_SHARED_CREDENTIALS_FILE"):
        await backed_up(store, b"a dump")
    with pytest.raises(InvalidSettings, match="AWS_SHARED_CREDENTIALS_FILE"):
        bucket.store()
    hold(file, None)
    with pytest.raises(InvalidSettings, match="AWS_SHARED_CREDENTIALS_FILE"):
        bucket.store()


async def test_keys_in_the_environment_come_first(
    bucket: BucketOfTest, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(file, None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", OLD)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    store = bucket.store()
    assert await restored(store, (await backed_up(store, b"a dump")).backup) == b"a dump"
