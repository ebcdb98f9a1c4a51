"""Objects of a store: written, read, listed and deleted, within a time limit, with the errors of this folder."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from app.backups.storage import folder as folders
from app.backups.storage.errors import MAX_MESSAGE, BackupDamaged, BackupMissing, StoreRefused, StoreUnavailable
from app.backups.storage.location import Bucket, Folder, client
from app.backups.storage.object_lock import ObjectLock
from app.core.settings import InvalidSettings

_PAGE = 1000


class ObjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An object as the store lists it."""

    name: str
    length: int
    modified: datetime
    """By the store's clock."""


class ObjectExists(Exception):
    """An object of this name was there already."""


class Objects:
    """Each method raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, place: Folder | Bucket, timeout_seconds: float, lock_mode: str = "off") -> None:
        """`timeout_seconds` bounds a request with its repetitions. Raises `InvalidSettings`."""
        if lock_mode != "off" and isinstance(place, Folder):
            raise InvalidSettings(f"HEADWATER_BACKUP_OBJECT_LOCK: {place} is a folder; only S3 has Object Lock")
        self._client = client(place, timeout_seconds)
        self._lock = (
            ObjectLock(place, lock_mode, timeout_seconds) if lock_mode != "off" and isinstance(place, Bucket) else None
        )
        self._place = place
        self._timeout = timeout_seconds

    async def put(self, name: str, data: bytes | bytearray) -> None:
        """Writes an object as a whole or not at all, in place of an older one."""
        async with self._asked(name):
            await obstore.put_async(self._client, name, data, use_multipart=False)
            await self._make_durable(name)

    async def create(self, name: str, data: bytes) -> None:
        """Writes a new object. Raises `ObjectExists` when there is one of this name already, which stays as it is."""
        async with self._asked(name):
            try:
                await obstore.put_async(self._client, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                raise ObjectExists(name) from None
            finally:
                # One that is there already may not be on the disk yet.
                with contextlib.suppress(FileNotFoundError):
                    await self._make_durable(name)

    async def get(self, name: str, *, most: int, length: int | None = None) -> memoryview:
        """Reads an object: at most `most` bytes, and exactly `length` if it is given. Raises `BackupMissing`;
        `BackupDamaged` for an object of another length."""
        async with self._asked(name):
            try:
                answer = await obstore.get_async(self._client, name)
            except FileNotFoundError as fault:
                self._insist_on_store(fault)
                raise BackupMissing(f"{name}: there is no such object") from None
            size = answer.meta["size"]
            if length is not None and size != length:
                raise BackupDamaged(name, f"it has {size} bytes, and the manifest says {length}")
            if size > most:
                raise BackupDamaged(name, f"it has {size} bytes, more than the {most} that it can have")
            return memoryview(await answer.bytes_async())

    async def top(self) -> tuple[Sequence[str], Sequence[ObjectInfo]]:
        """The folders at the top of the store, and the objects there."""
        async with self._asked(""):
            try:
                listed = await obstore.list_with_delimiter_async(self._client)
            except BaseError as fault:
                self._insist_on_store(fault)
                raise
            names = [prefix.rstrip("/").rpartition("/")[2] for prefix in listed["common_prefixes"]]
            return sorted(names), [_info(meta) for meta in listed["objects"]]

    async def list(self, folder: str) -> AsyncIterator[ObjectInfo]:
        """What one folder holds, and what is just being written there if the store is a folder of this machine."""
        pages = obstore.list(self._client, folder, chunk_size=_PAGE)
        while True:
            async with self._asked(folder):
                try:
                    page = await anext(pages)
                except StopAsyncIteration:
                    break
            for meta in page:
                yield _info(meta)
        for item in await self._unfinished(folder):
            yield item

    async def keep(self, names: Sequence[str], until: datetime | None) -> None:
        """Keeps anybody from deleting these objects before `until`, if Object Lock is set."""
        if self._lock is not None and until is not None:
            await self._lock.keep(names, until)

    async def keep_like(self, name: str, other: str) -> None:
        """Keeps anybody from deleting an object as long as the other one is kept, if Object Lock is set."""
        if self._lock is not None:
            await self._lock.keep_like(name, other)

    async def delete(self, folder: str, names: Sequence[str]) -> None:
        """Deletes objects of one folder. One that is gone already is fine. Raises `BackupLocked`."""
        if self._lock is not None:
            await self._lock.delete(folder, names)
            return
        for start in range(0, len(names), _PAGE):
            async with self._asked(names[start]):
                page = names[start : start + _PAGE]
                if isinstance(self._place, Folder):
                    await asyncio.to_thread(folders.remove, self._place.path, page)
                else:
                    await obstore.delete_async(self._client, list(page))

    async def delete_all(self, folder: str) -> None:
        """Deletes whatever the folder holds, older versions included. Raises `BackupLocked`."""
        if self._lock is not None:
            await self._lock.delete(folder)
        else:
            await self.delete(folder, [item.name async for item in self.list(folder)])

    async def _make_durable(self, name: str) -> None:
        if isinstance(self._place, Folder):
            await asyncio.to_thread(folders.make_durable, self._place.path, name)

    async def _unfinished(self, folder: str) -> Sequence[ObjectInfo]:
        if isinstance(self._place, Bucket):
            return ()
        found = await asyncio.to_thread(lambda root: list(folders.unfinished(root, folder)), self._place.path)
        return [
            ObjectInfo(name=name, length=stat.st_size, modified=datetime.fromtimestamp(stat.st_mtime, UTC))
            for name, stat in found
        ]

    def _insist_on_store(self, fault: Exception) -> None:
        """Raises `StoreRefused` if the bucket, or the store's folder, is missing, and not the object alone."""
        gone = not self._place.path.is_dir() if isinstance(self._place, Folder) else "NoSuchBucket" in str(fault)
        if gone:
            raise StoreRefused(f"{self._place}: the store itself is gone: {_shortened(fault)}")

    @contextlib.asynccontextmanager
    async def _asked(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                with _translated(f"{self._place}: {name}"):
                    yield
        except TimeoutError:
            raise StoreUnavailable(f"{self._place}: {name}: no answer within {self._timeout:g} seconds") from None


def _info(meta: "obstore.ObjectMeta") -> ObjectInfo:
    return ObjectInfo(name=meta["path"], length=meta["size"], modified=meta["last_modified"])


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError, InvalidPathError, NotSupportedError) as fault:
        raise StoreRefused(f"{what}: {_shortened(fault)}") from None
    except (PermissionError, FileNotFoundError) as fault:  # the latter of the bucket, or the store's folder
        raise StoreRefused(f"{what}: {_shortened(fault)}") from None
    except TimeoutError:
        raise
    except (BaseError, OSError) as fault:
        raise StoreUnavailable(f"{what}: {_shortened(fault)}") from None


def _shortened(fault: Exception) -> str:
    # What follows says the same for those who develop the library.
    message = " ".join(str(fault).partition("Debug source:")[0].split())
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
