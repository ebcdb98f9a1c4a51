"""Objects of a store: written, read, listed and deleted, within a time limit, with the errors of this folder."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime

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
from obstore.store import LocalStore, S3Store

from app.backup_store.errors import MAX_MESSAGE, BackupDamaged, BackupMissing, StoreRefused, StoreUnavailable

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

    def __init__(self, client: LocalStore | S3Store, name: str, timeout_seconds: float) -> None:
        """`timeout_seconds` bounds a request with its repetitions."""
        self._client = client
        self._name = name
        self._timeout = timeout_seconds

    async def put(self, name: str, data: bytes) -> None:
        """Written as a whole or not at all, in place of an older one."""
        async with self._asked(name):
            await obstore.put_async(self._client, name, data, use_multipart=False)

    async def create(self, name: str, data: bytes) -> None:
        """Raises `ObjectExists` when there is one already; it stays as it is."""
        async with self._asked(name):
            try:
                await obstore.put_async(self._client, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                raise ObjectExists(name) from None

    async def get(self, name: str, *, most: int, length: int | None = None) -> memoryview:
        """At most `most` bytes, of exactly `length` if it is given. Raises `BackupMissing`; `BackupDamaged` for one of
        another length."""
        async with self._asked(name):
            try:
                answer = await obstore.get_async(self._client, name)
            except FileNotFoundError:
                raise BackupMissing(f"{name}: there is no such object") from None
            size = answer.meta["size"]
            if length is not None and size != length:
                raise BackupDamaged(name, f"it has {size} bytes, and the manifest says {length}")
            if size > most:
                raise BackupDamaged(name, f"it has {size} bytes, more than the {most} that it can have")
            return memoryview(await answer.bytes_async())

    async def folders(self) -> list[str]:
        """The names at the top of the store that have objects below them."""
        async with self._asked(""):
            listed = await obstore.list_with_delimiter_async(self._client)
            return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in listed["common_prefixes"])

    async def list(self, folder: str | None = None) -> AsyncIterator[ObjectInfo]:
        pages = obstore.list(self._client, folder, chunk_size=_PAGE)
        while True:
            async with self._asked(folder or ""):
                try:
                    page = await anext(pages)
                except StopAsyncIteration:
                    return
            for meta in page:
                yield ObjectInfo(name=meta["path"], length=meta["size"], modified=meta["last_modified"])

    async def delete(self, names: Sequence[str]) -> None:
        """One that is gone already is fine."""
        for start in range(0, len(names), _PAGE):
            async with self._asked(names[start]):
                with contextlib.suppress(FileNotFoundError):
                    await obstore.delete_async(self._client, list(names[start : start + _PAGE]))

    @contextlib.asynccontextmanager
    async def _asked(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                with _translated(f"{self._name}: {name}"):
                    yield
        except TimeoutError:
            raise StoreUnavailable(f"{self._name}: {name}: no answer within {self._timeout:g} seconds") from None


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError, InvalidPathError, NotSupportedError) as fault:
        raise StoreRefused(f"{what}: {_shortened(fault)}") from None
    except FileNotFoundError as fault:  # of what isn't read: the bucket, or the folder
        raise StoreRefused(f"{what}: {_shortened(fault)}") from None
    except (BaseError, OSError) as fault:
        raise StoreUnavailable(f"{what}: {_shortened(fault)}") from None


def _shortened(fault: Exception) -> str:
    message = " ".join(str(fault).split())
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
