"""One attempt to write the parts of a dump, and the removal of what it wrote if it fails."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from pyrage.x25519 import Recipient

from app.backups.storage.errors import BackupStoreError
from app.backups.storage.manifest import Part, StoredParts
from app.backups.storage.objects import Objects
from app.backups.storage.parts import STEP_BYTES, CompressedPart, Compressor
from app.backups.storage.reading_ahead import reading_ahead
from app.core.priority import put_thread_last

_THREADS = 8
"""Enough for some backups at once, each of which compresses one part while it encrypts another."""
_executor = ThreadPoolExecutor(_THREADS, "backup-store", put_thread_last)
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_UPLOADS = 4
"""Parts of one backup that are encrypted or written at once."""
_CLEANING_SECONDS = 10
"""How long a write that failed spends on removing what it has written. The sweep finds the rest."""


class WriteAttempt:
    """Its objects lie in a folder of its own. Raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, objects: Objects, backup: str, recipient: Recipient) -> None:
        self._objects = objects
        self._backup = backup
        self._folder = f"{backup}/parts/{secrets.token_hex(8)}"
        self._recipient = recipient
        self._parts: dict[int, Part] = {}
        self._uploads: set[asyncio.Task[None]] = set()
        self._begun = 0
        self._sealing = asyncio.Lock()
        """Parts are sealed one at a time, for the memory that this takes; two would hardly run beside each other
        anyway."""

    async def write(self, chunks: AsyncIterator[bytes], progress: Callable[[int], None]) -> StoredParts:
        compressor, done = Compressor(), 0
        waiting, size = list[bytes](), 0
        async with reading_ahead(chunks) as ahead:
            async for chunk in ahead:
                for start in range(0, len(chunk), STEP_BYTES):
                    waiting.append(chunk[start : start + STEP_BYTES])
                    size += len(waiting[-1])
                    if size >= STEP_BYTES:
                        if part := await _in_background(compressor.feed, waiting):
                            await self._begin(part)
                        waiting, size = [], 0
                done += len(chunk)
                progress(done)
        if part := await _in_background(compressor.feed, waiting):
            await self._begin(part)
        if part := await _in_background(compressor.finish):
            await self._begin(part)
        while self._uploads:
            await self._one_less()
        return StoredParts(parts=tuple(self._parts[index] for index in range(self._begun)))

    async def undo(self) -> None:
        # An upload that is cancelled may arrive all the same, after the deletion.
        if self._uploads:
            await asyncio.wait(self._uploads, timeout=_CLEANING_SECONDS / 2)
        for upload in self._uploads:
            upload.cancel()
        await asyncio.gather(*self._uploads, return_exceptions=True)
        with contextlib.suppress(BackupStoreError, TimeoutError):
            async with asyncio.timeout(_CLEANING_SECONDS / 2):
                await self._objects.delete(self._backup, [self._name(index) for index in range(self._begun)])

    async def _begin(self, part: CompressedPart) -> None:
        while len(self._uploads) >= _UPLOADS:
            await self._one_less()
        upload: Coroutine[Any, Any, None] = self._upload(self._begun, part)
        self._begun += 1
        self._uploads.add(asyncio.create_task(upload))

    async def _one_less(self) -> None:
        ended, self._uploads = await asyncio.wait(self._uploads, return_when=asyncio.FIRST_COMPLETED)
        for upload in ended:
            upload.result()

    async def _upload(self, index: int, part: CompressedPart) -> None:
        async with self._sealing:
            sealed = await _in_background(part.seal, self._recipient)
        await self._objects.put(self._name(index), sealed.data)
        self._parts[index] = Part(
            name=self._name(index).partition("/")[2],
            length=len(sealed.data),
            sha256=sealed.sha256,
            plain_length=sealed.plain_length,
        )

    def _name(self, index: int) -> str:
        return f"{self._folder}/{index:08}.zst.age"


async def _in_background(function: Callable[_Given, _Made], *args: _Given.args, **keywords: _Given.kwargs) -> _Made:
    """As `asyncio.to_thread`."""
    return await asyncio.get_running_loop().run_in_executor(_executor, lambda: function(*args, **keywords))
