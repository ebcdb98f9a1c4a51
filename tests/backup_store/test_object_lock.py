"""Object Lock: nobody deletes a backup before it expires, and afterwards nothing of it is left, older versions
included."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.session
import pytest
import pytest_asyncio
from botocore.exceptions import ClientError

from app.backups.retention import find_removable, remove
from app.backups.storage.errors import BackupLocked, StoreRefused
from app.backups.storage.store import BackupStore
from app.backups.stored import adopt
from app.core.secrets import SecretBox
from app.core.setting_values import ObjectLock
from app.core.settings import InvalidSettings, Settings
from app.store.session import fetch, fetch_scalar
from app.upkeep.reconcile.records import check_records
from tests.support.backups import BOX, chunks_of, folder_store, manifest_of, restored
from tests.support.object_stores import S3Server, SeaweedService, s3_server
from tests.support.store_faults import store_faults
from tests.support.waiting import until


@pytest_asyncio.fixture(scope="session")
async def seaweed_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[S3Server]:
    async with s3_server(SeaweedService(tmp_path_factory.mktemp("seaweed"))) as server:
        yield server


class LockingBucket:
    """A bucket that can keep objects, and a client of it beside ours."""

    def __init__(self, name: str, client: Any) -> None:
        self.name = name
        self.client = client

    def store(self, mode: ObjectLock = "compliance", box: SecretBox = BOX) -> BackupStore:
        settings = Settings(backup_store=f"s3://{self.name}/some/prefix", backup_object_lock=mode)
        return BackupStore.from_settings(settings, box)

    def versions(self) -> list[tuple[str, str]]:
        listed = self.client.list_object_versions(Bucket=self.name)
        return [
            (one["Key"], one["VersionId"]) for kind in ("Versions", "DeleteMarkers") for one in listed.get(kind, ())
        ]


@pytest.fixture(params=["moto", pytest.param("seaweed", marks=pytest.mark.soak)])
def lock_server(request: pytest.FixtureRequest) -> S3Server:
    """Each S3 server that has Object Lock."""
    server: S3Server = request.getfixturevalue(f"{request.param}_server")
    return server


@pytest_asyncio.fixture
async def locking(lock_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> LockingBucket:
    for name, value in lock_server.environ.items():
        monkeypatch.setenv(name, value)
    client = botocore.session.get_session().create_client("s3", endpoint_url=lock_server.url)
    made = LockingBucket(f"b-{uuid4()}", client)
    client.create_bucket(Bucket=made.name, ObjectLockEnabledForBucket=True)

    async def writes() -> bool:
        # It answers for seconds before it can write.
        with contextlib.suppress(ClientError):
            written = await asyncio.to_thread(client.put_object, Bucket=made.name, Key="first", Body=b"")
            client.delete_object(Bucket=made.name, Key="first", VersionId=written["VersionId"])
            return True
        return False

    await until(writes)
    return made


async def backed_up_until(store: BackupStore, moment: datetime) -> Any:
    backup = uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks_of(b"a dump"))
    return await store.put_manifest(manifest_of(backup, stored, key, expires_at=moment), key)


async def test_nobody_deletes_it_before_it_expires(locking: LockingBucket) -> None:
    store, moment = locking.store(), (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    manifest = await backed_up_until(store, moment)
    with pytest.raises(BackupLocked) as locked:
        await store.delete(manifest.backup)
    assert locked.value.until == moment
    assert await restored(store, manifest.backup) == b"a dump"
    kept = locking.versions()
    assert len(kept) == 3
    for key, version in kept:
        with pytest.raises(ClientError, match="AccessDenied"):
            locking.client.delete_object(Bucket=locking.name, Key=key, VersionId=version)


async def test_a_key_that_is_sealed_anew_is_kept_too(locking: LockingBucket) -> None:
    """It is another version of its object, and the only one once the older secret key is gone."""
    manifest = await backed_up_until(locking.store(), datetime.now(UTC) + timedelta(days=1))
    newer = locking.store(box=SecretBox({"k2": bytes([2] * 32), "k1": bytes(32)}))
    assert [one.changed async for one in newer.reseal()] == [True]
    kept = locking.versions()
    assert len(kept) == 4
    for key, version in kept:
        with pytest.raises(ClientError, match="AccessDenied"):
            locking.client.delete_object(Bucket=locking.name, Key=key, VersionId=version)
    assert await restored(locking.store(box=SecretBox({"k2": bytes([2] * 32)})), manifest.backup) == b"a dump"


async def test_afterwards_nothing_is_left(locking: LockingBucket) -> None:
    store = locking.store()
    manifest = await backed_up_until(store, datetime.now(UTC) + timedelta(seconds=2))

    async def deleted() -> bool:
        try:
            await store.delete(manifest.backup)
        except BackupLocked:
            return False
        return True

    await until(deleted)
    assert locking.versions() == []
    await store.delete(manifest.backup)


async def test_its_removal_waits_for_that_time(locking: LockingBucket, own_store: None) -> None:
    store, moment = locking.store(), (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    manifest = await backed_up_until(store, moment)
    team = await fetch_scalar(int, "INSERT INTO teams (name, tier) VALUES ('one', 'free') RETURNING id")
    assert await adopt(manifest, b"key", team)
    await fetch("UPDATE backups SET status = 'expired'")
    assert await find_removable(manifest.region, 10, without=[]) == [manifest.backup]
    await remove(store, manifest.backup)
    assert await find_removable(manifest.region, 10, without=[]) == []
    assert len(locking.versions()) == 3
    assert await fetch_scalar(datetime, "SELECT locked_until FROM backups WHERE removed_at IS NULL") == moment
    await fetch("UPDATE backups SET changed_at = now() - interval '2 hours'")
    assert await check_records(timedelta()) == []
    await fetch("UPDATE backups SET locked_until = now() - interval '2 hours'")
    assert await find_removable(manifest.region, 10, without=[]) == [manifest.backup]
    assert [one.rule for one in await check_records(timedelta())] == ["backup_not_removed"]


async def test_what_never_became_a_backup_is_not_kept(locking: LockingBucket) -> None:
    store, backup = locking.store(), uuid4()
    await store.write(backup, store.new_key(backup), chunks_of(b"a dump"))

    async def unwanted(_: Any) -> bool:
        return False

    removed = [item async for item in store.remove_strays(datetime.now(UTC) + timedelta(days=1), unwanted)]
    assert len(removed) == 1
    assert locking.versions() == []


async def test_a_repeated_manifest_keeps_what_the_first_attempt_did_not(locking: LockingBucket) -> None:
    unlocked, store = locking.store("off"), locking.store()
    moment = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    manifest = await backed_up_until(unlocked, moment)
    await store.put_manifest(manifest, await store.stored_key(manifest.backup))
    with pytest.raises(BackupLocked):
        await store.delete(manifest.backup)


async def test_a_bucket_without_it_is_refused(locking: LockingBucket) -> None:
    plain = LockingBucket(f"b-{uuid4()}", locking.client)
    locking.client.create_bucket(Bucket=plain.name)
    with pytest.raises(StoreRefused, match="PutObjectRetention"):
        await backed_up_until(plain.store(), datetime.now(UTC) + timedelta(days=1))


def test_a_folder_has_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="HEADWATER_BACKUP_OBJECT_LOCK"):
        folder_store(tmp_path, backup_object_lock="compliance")


async def test_a_seal_is_locked_although_who_made_it_died_before(locking: LockingBucket) -> None:
    digest, moment = "ab" * 32, (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    await locking.store("off").audit_heads.keep(7, digest, moment)
    await locking.store().audit_heads.keep(7, digest, moment)
    assert await locking.store().audit_heads.all() == [(7, digest)]
    ((key, version),) = locking.versions()
    kept = locking.client.head_object(Bucket=locking.name, Key=key, VersionId=version)
    assert (kept["ObjectLockMode"], kept["ObjectLockRetainUntilDate"]) == ("COMPLIANCE", moment)
    with pytest.raises(ClientError):
        locking.client.delete_object(Bucket=locking.name, Key=key, VersionId=version)


async def test_credentials_of_a_file_that_are_replaced(
    moto_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with store_faults(moto_server.port) as way:
        for name, value in {**moto_server.environ, "AWS_ENDPOINT_URL": way.url}.items():
            monkeypatch.setenv(name, value)
        made = f"b-{uuid4()}"
        client = botocore.session.get_session().create_client("s3", endpoint_url=moto_server.url)
        client.create_bucket(Bucket=made, ObjectLockEnabledForBucket=True)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
        store: BackupStore | None = None
        for key in ("one", "two"):
            (tmp_path / "keys").write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key=s\n")
            way.keys = {key}
            store = store or LockingBucket(made, client).store()
            manifest = await backed_up_until(store, datetime.now(UTC) + timedelta(days=1))
            with pytest.raises(BackupLocked):
                await store.delete(manifest.backup)
        (tmp_path / "keys").unlink()
        assert store is not None
        with pytest.raises(StoreRefused, match="AWS_SHARED_CREDENTIALS_FILE"):
            await store.delete(manifest.backup)
