"""A store that fails ends what is under way with an error that says why, and nothing of it is left behind."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from app.backups.storage.errors import BackupStoreError, StoreRefused, StoreUnavailable
from app.backups.storage.parts import PART_BYTES
from tests.backup_store.conftest import BucketOfTest
from tests.support.backups import backed_up, chunks_of, manifest_of, random_dump, restored
from tests.support.store_faults import Fault
from tests.support.waiting import LIMIT_SECONDS, until

DUMP = random_dump(2 * PART_BYTES + 1000)
"""Of three parts."""


async def left(bucket: BucketOfTest) -> list[str]:
    bucket.way.decide = lambda _method, _path: None
    return [getattr(item, "name", str(item)) async for item in bucket.store().walk()]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.ERROR, StoreUnavailable),
        (Fault.BUSY, StoreUnavailable),
        (Fault.FULL, StoreUnavailable),
        (Fault.HANG, StoreUnavailable),
        (Fault.BREAK, StoreUnavailable),
        (Fault.FORBIDDEN, StoreRefused),
        (Fault.SKEWED, StoreRefused),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_a_write_that_fails_in_the_middle(
    bucket: BucketOfTest, fault: Fault, error: type[BackupStoreError]
) -> None:
    # Only what hangs ends by the limit, which holds for the other parts too.
    store, backup = bucket.store(timeout_seconds=10 if fault is Fault.HANG else 20), uuid4()
    bucket.way.decide = lambda method, path: fault if method == "PUT" and "00000001" in path else None
    with pytest.raises(error) as failed:
        await store.write(backup, store.new_key(backup), chunks_of(DUMP))
    assert "00000001" in str(failed.value)
    assert await left(bucket) == []


async def test_an_answer_that_is_lost_is_asked_for_again(bucket: BucketOfTest) -> None:
    store, lost = bucket.store(), set[str]()

    def once(method: str, path: str) -> Fault | None:
        if method != "PUT" or path in lost:
            return None
        lost.add(path)
        return Fault.LOST

    bucket.way.decide = once
    manifest = await backed_up(store, b"a dump")
    assert len(lost) == 3  # the part, the key, the manifest
    assert await restored(store, manifest.backup) == b"a dump"


async def test_a_dump_that_fails_leaves_nothing(bucket: BucketOfTest) -> None:
    async def broken() -> AsyncIterator[bytes]:
        async for chunk in chunks_of(DUMP):
            yield chunk
        raise ConnectionError("the host is gone")

    store, backup = bucket.store(), uuid4()
    with pytest.raises(ConnectionError, match="the host is gone"):
        await store.write(backup, store.new_key(backup), broken())
    assert await left(bucket) == []


async def test_a_write_that_is_cancelled_leaves_nothing(bucket: BucketOfTest) -> None:
    reached = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        async for chunk in chunks_of(DUMP):
            yield chunk
        reached.set()
        await asyncio.Event().wait()

    store, backup = bucket.store(), uuid4()
    writing = asyncio.create_task(store.write(backup, store.new_key(backup), endless()))
    await reached.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await left(bucket) == []


async def test_a_write_whose_store_stays_away_ends(bucket: BucketOfTest) -> None:
    store, backup = bucket.store(timeout_seconds=1), uuid4()
    bucket.way.decide = lambda _method, _path: Fault.HANG
    with pytest.raises(StoreUnavailable, match="00000000"):
        await store.write(backup, store.new_key(backup), chunks_of(b"a dump"))


async def test_other_writes_go_on_while_one_hangs(bucket: BucketOfTest) -> None:
    store, hanging = bucket.store(timeout_seconds=LIMIT_SECONDS), uuid4()
    bucket.way.decide = lambda _method, path: Fault.HANG if str(hanging) in path else None
    writing = asyncio.create_task(store.write(hanging, store.new_key(hanging), chunks_of(DUMP)))
    await until(lambda: any(str(hanging) in path for _method, path in bucket.way.seen))
    manifest = await backed_up(store, b"another dump")
    assert await restored(store, manifest.backup) == b"another dump"
    assert not writing.done()
    bucket.way.decide = lambda _method, _path: None  # or what it has written is not removed before a limit either
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.BREAK, Fault.FORBIDDEN], ids=lambda fault: fault.name)
async def test_a_manifest_that_is_not_written_makes_no_backup(bucket: BucketOfTest, fault: Fault) -> None:
    store, backup = bucket.store(), uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks_of(b"a dump"))
    bucket.way.decide = lambda method, path: fault if path.endswith("manifest") and method == "PUT" else None
    with pytest.raises(BackupStoreError):
        await store.put_manifest(manifest_of(backup, stored, key), key)
    assert all(name.startswith(str(backup)) for name in await left(bucket))
    await store.put_manifest(manifest_of(backup, stored, key), key)
    assert await restored(store, backup) == b"a dump"


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.ERROR, StoreUnavailable), (Fault.HANG, StoreUnavailable), (Fault.FORBIDDEN, StoreRefused)],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
async def test_a_read_that_fails_says_so(bucket: BucketOfTest, fault: Fault, error: type[BackupStoreError]) -> None:
    manifest = await backed_up(bucket.store(), b"a dump")
    bucket.way.decide = lambda method, path: fault if ".age" in path else None
    with pytest.raises(error):
        await restored(bucket.store(timeout_seconds=2 if fault is Fault.HANG else 20), manifest.backup)


async def test_a_bucket_that_is_gone_is_no_missing_backup(bucket: BucketOfTest) -> None:
    gone = BucketOfTest(bucket.server, "there-is-no-such-bucket", bucket.way).store()
    with pytest.raises(StoreRefused, match="NoSuchBucket"):
        await gone.get_manifest(uuid4())
    with pytest.raises(StoreRefused, match="NoSuchBucket"):
        await backed_up(gone, b"a dump")
    with pytest.raises(StoreRefused, match="NoSuchBucket"):
        _ = [item async for item in gone.walk()]
