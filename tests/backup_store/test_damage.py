"""What was truncated, edited, exchanged, reordered or put back never restores: it is named."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyrage
import pytest
import pytest_asyncio
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyrage.x25519 import Identity

from app.backups.storage.errors import BackupDamaged, BackupMissing
from app.backups.storage.manifest import BackupManifest, StoredParts
from app.backups.storage.parts import Compressor, DamagedPart, decompress
from app.backups.storage.store import BackupStore, StoredBackup
from app.core.secrets import SecretBox
from app.engines.dumping import DumpRefused
from tests.support.backups import backed_up, chunks_of, files_of, folder_store, manifest_of, restored

DUMP = b"a row of a tenant, as it was at that moment\n" * 30


class Original:
    """Two backups of several small parts, and a folder to put damaged copies of them in."""

    def __init__(self, folder: Path, one: BackupManifest, other: BackupManifest) -> None:
        self.one, self.other = one, other
        self._folder = folder
        self._kept = files_of(folder)
        self.names = sorted(name for name in self._kept if name.startswith(str(one.backup)))

    def counterpart(self, name: str) -> str:
        """The same object of the other backup."""
        index = self.names.index(name)
        return sorted(name for name in self._kept if name.startswith(str(self.other.backup)))[index]

    def bytes_of(self, name: str) -> bytes:
        return self._kept[name]

    def changed(self, **contents: bytes | None) -> BackupStore:
        """A store with those contents."""
        for name, data in (self._kept | contents).items():
            path = self._folder / name
            if data is None:
                path.unlink(missing_ok=True)
            elif not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
        return folder_store(self._folder)


async def small_parts(store: BackupStore, dump: bytes) -> BackupManifest:
    """A backup of four parts, put together from four writes, for parts of a few hundred bytes."""
    backup = uuid4()
    key = store.new_key(backup)
    size = len(dump) // 4
    written = [await store.write(backup, key, chunks_of(dump[at : at + size])) for at in range(0, len(dump), size)]
    parts = StoredParts(parts=tuple(part for each in written for part in each.parts))
    return await store.put_manifest(manifest_of(backup, parts, key), key)


@pytest_asyncio.fixture(scope="module")
async def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    folder = tmp_path_factory.mktemp("store")
    store = folder_store(folder)
    return Original(folder, await small_parts(store, DUMP), await small_parts(store, DUMP.upper()))


@given(data=st.data())
async def test_changed_bytes_are_noticed(original: Original, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(original.names))
    whole = original.bytes_of(name)
    at = data.draw(st.integers(0, len(whole) - 1))
    change: Callable[[], bytes] = data.draw(
        st.sampled_from(
            [
                lambda: whole[:at],
                lambda: whole[at + 1 :],
                lambda: whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
                lambda: whole[:at] + b"\x00" + whole[at:],
                lambda: whole + whole[at:],
                lambda: bytes(len(whole)),
            ]
        )
    )
    with pytest.raises(BackupDamaged) as damaged:
        await restored(original.changed(**{name: change()}), original.one.backup)
    # A key of zeros or another key's opens another manifest, or none.
    assert damaged.value.object in (name, f"{original.one.backup}/manifest")
    assert damaged.value.why


@given(data=st.data())
async def test_exchanged_objects_are_noticed(original: Original, data: st.DataObject) -> None:
    """Any object of the backup in the place of any other, and the other backup's in the place of its own."""
    name, source = (data.draw(st.sampled_from(original.names)) for _ in range(2))
    if data.draw(st.booleans()):
        source = original.counterpart(name)
    if source == name:
        return
    with pytest.raises(BackupDamaged):
        await restored(original.changed(**{name: original.bytes_of(source)}), original.one.backup)


async def test_a_whole_backup_under_another_ones_name_is_noticed(original: Original) -> None:
    moved = {name: original.bytes_of(original.counterpart(name)) for name in original.names}
    with pytest.raises(BackupDamaged, match="key"):
        await restored(original.changed(**moved), original.one.backup)


async def test_missing_objects_are_named(original: Original) -> None:
    for name in original.names:
        expected = BackupDamaged if "/parts/" in name else BackupMissing
        with pytest.raises(expected, match=name):
            await restored(original.changed(**{name: None}), original.one.backup)


async def test_reordered_parts_are_noticed(original: Original) -> None:
    first, second = [name for name in original.names if "/parts/" in name][:2]
    swapped = {first: original.bytes_of(second), second: original.bytes_of(first)}
    with pytest.raises(BackupDamaged, match="parts"):
        await restored(original.changed(**swapped), original.one.backup)


async def test_what_is_whole_restores(original: Original) -> None:
    assert await restored(original.changed(), original.one.backup) == DUMP
    assert await restored(original.changed(), original.other.backup) == DUMP.upper()


async def test_who_knows_only_the_recipient_cannot_plant_a_backup(tmp_path: Path) -> None:
    """Somebody who can write to the store, knows the recipient and how everything is made, but no secret key."""
    operator = Identity.generate()
    identities = tmp_path / "identities"
    identities.write_text(str(operator))
    settings: dict[str, Any] = {
        "backup_age_recipient": str(operator.to_public()),
        "backup_age_identity_file": identities,
    }
    ours = folder_store(tmp_path / "store", **settings)
    theirs = folder_store(tmp_path / "store", SecretBox({"k1": bytes([9] * 32)}), **settings)
    planted = await backed_up(theirs, b"what somebody planted")
    with pytest.raises(BackupDamaged, match="key"):
        await restored(ours, planted.backup)

    genuine = await backed_up(ours, b"what a tenant had")
    for name in ("manifest", "key"):
        # Each of theirs, in a genuine backup.
        target = tmp_path / "store" / str(genuine.backup) / name
        kept = target.read_bytes()
        shutil.copy(tmp_path / "store" / str(planted.backup) / name, target)
        with pytest.raises(BackupDamaged):
            await restored(ours, genuine.backup)
        target.write_bytes(kept)
    assert await restored(ours, genuine.backup) == b"what a tenant had"


async def test_a_part_made_by_somebody_else_is_not_read(tmp_path: Path) -> None:
    """Parts are encrypted to a public key, so anybody who has seen it can make one; the manifest names the hash."""
    store = folder_store(tmp_path)
    manifest = await backed_up(store, b"a dump")
    key = await store.stored_key(manifest.backup)
    part = manifest.parts[0]

    def forged() -> bytes:
        """Of the same length, before it is encrypted too. The format adds something of a random length."""
        while True:
            compressor = Compressor()
            compressor.feed([b"forged"])
            last = compressor.finish()
            assert last is not None
            data = bytes(last.seal(key.recipient).data)
            if len(data) == part.length:
                return data

    (tmp_path / str(manifest.backup) / part.name).write_bytes(forged())
    with pytest.raises(BackupDamaged, match="SHA-256") as damaged:
        await restored(store, manifest.backup)
    assert damaged.value.object.endswith(part.name)


async def test_an_older_copy_of_a_part_is_not_read(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    backup = uuid4()
    key = store.new_key(backup)
    older = await store.write(backup, key, chunks_of(b"first attempt"))
    kept = (tmp_path / str(backup) / older.parts[0].name).read_bytes()
    newer = await store.write(backup, key, chunks_of(b"other attempt"))
    await store.put_manifest(manifest_of(backup, newer, key), key)
    (tmp_path / str(backup) / newer.parts[0].name).write_bytes(kept)
    with pytest.raises(BackupDamaged, match=newer.parts[0].name):
        await restored(store, backup)


def test_a_part_that_unpacks_to_more_is_stopped() -> None:
    steps = decompress([zstandard.compress(bytes(500_000_000))], 3_000_000)
    assert len(next(steps)) + len(next(steps)) < 3_000_000
    with pytest.raises(DamagedPart, match="more than the 3000000 bytes"):
        next(steps)


def test_a_part_that_unpacks_to_less_is_noticed() -> None:
    with pytest.raises(DamagedPart, match="less than the 10"):
        list(decompress([zstandard.compress(b"1234")], 10))


def test_a_window_larger_than_ours_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(DamagedPart, match="can't be decompressed"):
        list(decompress([compressor.compress(bytes(200_000_000)), compressor.flush()], 200_000_000))


async def test_a_manifest_that_unpacks_to_more_is_stopped(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    manifest = await backed_up(store, b"a dump")
    key = await store.stored_key(manifest.backup)
    bomb = key.encrypt(zstandard.compress(bytes(300 * 1024 * 1024)), "manifest")
    (tmp_path / str(manifest.backup) / "manifest").write_bytes(bomb)
    with pytest.raises(BackupDamaged, match="too large"):
        await store.get_manifest(manifest.backup)


async def test_none_is_written_that_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = folder_store(tmp_path)
    monkeypatch.setattr("app.backups.storage.manifest.MAX_MANIFEST_BYTES", 100)
    with pytest.raises(DumpRefused, match="more than 100 bytes"):
        await backed_up(store, b"a dump")
    assert not [one async for one in store.walk() if isinstance(one, StoredBackup)]


async def test_the_standard_tools_read_a_backup(tmp_path: Path) -> None:
    """Each part is an age file that holds a zstd frame; in order they are the dump."""
    store = folder_store(tmp_path)
    manifest = await small_parts(store, DUMP)
    identity = (await store.stored_key(manifest.backup)).identity
    files = [(tmp_path / str(manifest.backup) / part.name).read_bytes() for part in manifest.parts]
    frames = b"".join(pyrage.decrypt(file, [identity]) for file in files)
    with zstandard.ZstdDecompressor().stream_reader(frames, read_across_frames=True) as stream:
        assert stream.read(len(DUMP) + 1) == DUMP
