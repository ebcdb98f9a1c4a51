"""What is written to the store is read back, by who may read it, and by nobody else."""

import os
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyrage.x25519 import Identity

from app.backups.storage.errors import BackupDamaged, BackupMissing, IdentityNeeded
from app.backups.storage.parts import PART_BYTES, STEP_BYTES
from app.backups.storage.store import StoredBackup, StrayObject
from app.core.secrets import SecretBox
from tests.backup_store.conftest import StoreOfBox
from tests.support.backups import BOX, backed_up, chunks_of, files_of, folder_store, manifest_of, random_dump, restored


@pytest.mark.parametrize(
    "dump",
    [b"", b"x", random_dump(3 * 1_048_576 + 17), bytes(50_000_000), random_dump(PART_BYTES + 5_000_000)],
    ids=["empty", "one byte", "a few chunks", "zeros", "two parts"],
)
async def test_what_is_written_is_read(tmp_path: Path, dump: bytes) -> None:
    store = folder_store(tmp_path)
    manifest = await backed_up(store, dump)
    assert await restored(store, manifest.backup) == dump
    assert manifest.plain_bytes == len(dump)
    assert manifest.stored_bytes == sum(len(data) for name, data in files_of(tmp_path).items() if name.endswith(".age"))


@settings(max_examples=25, deadline=None)
@given(dump=st.binary(max_size=4000), size=st.integers(1, 700))
async def test_however_it_is_cut(tmp_path_factory: pytest.TempPathFactory, dump: bytes, size: int) -> None:
    store = folder_store(tmp_path_factory.mktemp("store"))
    backup = uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks_of(dump, size))
    await store.put_manifest(manifest_of(backup, stored, key), key)
    assert await restored(store, backup) == dump


async def test_nothing_is_legible_in_the_store(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    await backed_up(store, b"a row of a tenant " * 10)
    kept = b"".join(files_of(tmp_path).values())
    for secret in (b"row of a tenant", b"orders", b"a team", b"a password", b"AGE-SECRET-KEY"):
        assert secret not in kept


async def test_the_first_manifest_counts(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    first = await backed_up(store, b"first")
    key = await store.stored_key(first.backup)
    again = await store.put_manifest(msgspec.structs.replace(first, description="second"), key)
    assert again == first == await store.get_manifest(first.backup)


async def test_without_a_manifest_there_is_no_backup(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    backup = uuid4()
    stored = await store.write(backup, store.new_key(backup), chunks_of(b"a dump"))
    with pytest.raises(BackupMissing):
        await store.get_manifest(backup)
    found = [item async for item in store.walk()]
    assert [(type(item), item.backup) for item in found] == [(StrayObject, backup)]
    assert stored.parts[0].name in found[0].name  # type: ignore[union-attr]


async def test_the_walk_finds_backups_and_strays(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    one, other = await backed_up(store, b"one"), await backed_up(store, b"other")
    (tmp_path / "something else").mkdir()
    (tmp_path / "something else" / "file").write_bytes(b"1234")
    found = [item async for item in store.walk()]
    assert {item.backup for item in found if isinstance(item, StoredBackup)} == {one.backup, other.backup}
    strays = [item for item in found if isinstance(item, StrayObject)]
    assert [(item.name, item.length, item.backup) for item in strays] == [("something else/file", 4, None)]


async def test_a_deleted_backup_leaves_nothing(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    manifest, other = await backed_up(store, b"one"), await backed_up(store, b"other")
    await store.delete(manifest.backup)
    await store.delete(manifest.backup)
    with pytest.raises(BackupMissing):
        await store.get_manifest(manifest.backup)
    assert [item.backup async for item in store.walk()] == [other.backup]
    assert await restored(store, other.backup) == b"other"


async def test_other_keys_read_nothing(tmp_path: Path) -> None:
    manifest = await backed_up(folder_store(tmp_path), b"a dump")
    with pytest.raises(BackupDamaged, match="key"):
        await restored(folder_store(tmp_path, SecretBox({"k1": bytes([1] * 32)})), manifest.backup)


async def test_an_older_key_still_reads(tmp_path: Path) -> None:
    manifest = await backed_up(folder_store(tmp_path), b"a dump")
    newer = SecretBox({"k2": bytes([2] * 32), "k1": bytes(32)})
    assert await restored(folder_store(tmp_path, newer), manifest.backup) == b"a dump"


async def test_secrets_of_a_manifest_open_with_its_key_alone(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    one, other = await backed_up(store, b"one"), await backed_up(store, b"other")
    key = await store.stored_key(one.backup)
    assert key.open(one.sealed_password, "user_1") == "a password"
    with pytest.raises(BackupDamaged):
        key.open(one.sealed_password, "user_2")
    with pytest.raises(BackupDamaged):
        (await store.stored_key(other.backup)).open(one.sealed_password, "user_1")


async def test_what_only_a_recipient_reads(tmp_path: Path) -> None:
    identity = Identity.generate()
    store = folder_store(tmp_path / "store", backup_age_recipient=str(identity.to_public()))
    backup = uuid4()
    key = store.new_key(backup)
    assert key.identity is None
    stored = await store.write(backup, key, chunks_of(b"a dump"))
    manifest = await store.put_manifest(manifest_of(backup, stored, key), key)
    assert await store.get_manifest(backup) == manifest
    with pytest.raises(IdentityNeeded, match="HEADWATER_BACKUP_AGE_IDENTITY_FILE"):
        await restored(store, backup)

    identities = tmp_path / "identities"
    identities.write_text(f"# of somebody else\n{Identity.generate()}\n\n{identity}\n")
    able = folder_store(tmp_path / "store", backup_age_identity_file=identities)
    assert await restored(able, backup) == b"a dump"

    identities.write_text(str(Identity.generate()))
    with pytest.raises(IdentityNeeded):
        await restored(folder_store(tmp_path / "store", backup_age_identity_file=identities), backup)


async def test_resealing_lets_an_older_key_go(any_store_of: StoreOfBox) -> None:
    manifest = await backed_up(any_store_of(BOX), b"a dump")
    both = SecretBox({"k2": bytes([2] * 32), "k1": bytes(32)})
    newer = any_store_of(both)
    assert await newer.key_ids() == {"k1": 1}
    assert [(one.key_id, one.changed) async for one in newer.reseal()] == [("k2", True)]
    assert [(one.key_id, one.changed) async for one in newer.reseal()] == [("k2", False)]
    assert await newer.key_ids() == {"k2": 1}
    alone = any_store_of(SecretBox({"k2": bytes([2] * 32)}))
    assert await restored(alone, manifest.backup) == b"a dump"


async def test_a_restore_goes_on_while_keys_are_sealed_anew(any_store_of: StoreOfBox) -> None:
    dump = os.urandom(PART_BYTES + STEP_BYTES)
    manifest = await backed_up(any_store_of(BOX), dump)
    store = any_store_of(BOX)
    reading = store.read(manifest, await store.stored_key(manifest.backup))
    read = [await anext(reading)]
    async for one in any_store_of(SecretBox({"k2": bytes([2] * 32), "k1": bytes(32)})).reseal():
        assert one.changed
    read += [step async for step in reading]
    assert b"".join(read) == dump


async def test_a_backup_that_was_under_way_is_sealed_with_the_newest_key(tmp_path: Path) -> None:
    backup = uuid4()
    key = folder_store(tmp_path).new_key(backup)
    both = folder_store(tmp_path, SecretBox({"k2": bytes([2] * 32), "k1": bytes(32)}))
    stored = await both.write(backup, key, chunks_of(b"a dump"))
    await both.put_manifest(manifest_of(backup, stored, key), key)
    assert await both.key_ids() == {"k2": 1}


async def test_a_key_that_nothing_opens_is_named(tmp_path: Path) -> None:
    manifest = await backed_up(folder_store(tmp_path), b"a dump")
    other = folder_store(tmp_path, SecretBox({"k2": bytes(32)}))
    [named] = [one async for one in other.reseal()]
    assert (named.backup, named.key_id) == (manifest.backup, None)
    assert "k2" not in (named.error or "")
    assert await restored(folder_store(tmp_path), manifest.backup) == b"a dump"
