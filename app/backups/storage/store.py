"""The backup store: writing, reading and deleting backups, and looking over everything that it holds."""

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from pyrage.x25519 import Identity, Recipient

from app.backups.storage import keys
from app.backups.storage.audit_heads import FOLDER as AUDIT_FOLDER
from app.backups.storage.audit_heads import AuditHeads
from app.backups.storage.errors import BackupDamaged, BackupMissing, BackupStoreError, IdentityNeeded
from app.backups.storage.keys import KEY_BYTES, BackupKey
from app.backups.storage.location import location
from app.backups.storage.manifest import MAX_MANIFEST_BYTES, BackupManifest, Part, StoredParts, decode, encode
from app.backups.storage.objects import ObjectExists, ObjectInfo, Objects
from app.backups.storage.operator_keys import operator_identities, operator_recipient
from app.backups.storage.parts import (
    MAX_PART_BYTES,
    OTHER_HASH,
    DamagedPart,
    decompress,
    open_part,
)
from app.backups.storage.writing import WriteAttempt
from app.core.secrets import SecretBox
from app.core.settings import Settings


class StoredBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup in the store: it has a manifest, which hasn't been read."""

    backup: UUID
    objects: tuple[ObjectInfo, ...]

    @property
    def stored_bytes(self) -> int:
        return sum(item.length for item in self.objects)


class StrayObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of no backup. `backup` is the one to whose folder it belongs, which may be under way."""

    name: str
    length: int
    modified: datetime
    backup: UUID | None


class ResealedKey(msgspec.Struct, frozen=True, kw_only=True):
    """`key_id` is the secret key that the key of a backup is sealed with now; None when no configured one opens it."""

    backup: UUID
    key_id: str | None
    changed: bool
    error: str | None = None


class BackupStore:
    """One for each process. Its methods raise `StoreUnavailable` and `StoreRefused`."""

    def __init__(
        self,
        objects: Objects,
        box: SecretBox,
        *,
        recipient: Recipient | None = None,
        identities: Sequence[Identity] = (),
    ) -> None:
        self._objects = objects
        self._box = box
        self._recipient = recipient
        self._identities = identities
        self.audit_heads = AuditHeads(objects)

    @classmethod
    def from_settings(cls, settings: Settings, box: SecretBox) -> "BackupStore":
        """Raises `InvalidSettings`."""
        return cls(
            Objects(location(settings), settings.backup_store_timeout_seconds, settings.backup_object_lock),
            box,
            recipient=operator_recipient(settings),
            identities=operator_identities(settings),
        )

    def new_key(self, backup: UUID) -> BackupKey:
        """A key for a new backup. Keep its `sealed` before anything is written with it."""
        return keys.new_key(self._box, backup, self._recipient)

    def open_key(self, backup: UUID, sealed: bytes) -> BackupKey:
        """Raises `BackupDamaged`."""
        return keys.open_key(self._box, backup, sealed, self._identities)

    async def stored_key(self, backup: UUID) -> BackupKey:
        """The key as the store keeps it, for when our own row is lost. Raises `BackupMissing`; `BackupDamaged`."""
        sealed = await self._objects.get(_key_name(backup), most=KEY_BYTES)
        return self.open_key(backup, bytes(sealed))

    def readable(self, key: BackupKey) -> bytes:
        """The key in a form that opens without the operator's identity, with which this one was opened."""
        return keys.readable(self._box, key)

    async def write(
        self,
        backup: UUID,
        key: BackupKey,
        chunks: AsyncIterator[bytes],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> StoredParts:
        """Writes a dump. `progress` gets the number of the dump's bytes that have been read. Each attempt writes
        objects of its own; an attempt that fails, or is cancelled, removes them as far as it can."""
        attempt = WriteAttempt(self._objects, str(backup), key.recipient)
        try:
            return await attempt.write(chunks, progress or (lambda _: None))
        except BaseException:
            await attempt.undo()
            raise

    async def read(self, manifest: BackupManifest, key: BackupKey) -> AsyncIterator[bytes]:
        """The dump. Each part is checked as a whole before anything of it is given out. Raises `BackupDamaged`;
        `IdentityNeeded`."""
        if key.identity is None:
            raise IdentityNeeded(
                f"Backup {manifest.backup} is encrypted to an age recipient. Its identity is needed to read it:"
                " HEADWATER_BACKUP_AGE_IDENTITY_FILE, or --identity FILE."
            )
        for part in manifest.parts:
            async for step in self._open_part(manifest, part, key.identity):
                yield step

    async def check_part(self, manifest: BackupManifest, part: Part, key: BackupKey) -> None:
        """Reads a part as a restore does; without the identity that this needs, checks its hash alone. Raises
        `BackupDamaged`."""
        if key.identity is None:
            data = await self._get_part(manifest, part)
            if await asyncio.to_thread(lambda: hashlib.sha256(data).digest()) != part.sha256:
                raise BackupDamaged(_part_name(manifest, part), OTHER_HASH)
            return
        async for _ in self._open_part(manifest, part, key.identity):
            pass

    async def put_manifest(self, manifest: BackupManifest, key: BackupKey) -> BackupManifest:
        """Makes a backup of what has been written, and returns the manifest that counts: this one, or one that was
        there already, which an earlier attempt has written. Raises `BackupDamaged` if that one can't be read, and
        `DumpRefused` where this one would be too large to be read again."""
        # The key in our row may have been sealed anew since this one was read.
        fresh = keys.resealed(self._box, key.backup, key.sealed)
        _, sealed = await asyncio.gather(
            self._objects.put(_key_name(manifest.backup), fresh), asyncio.to_thread(encode, manifest, key)
        )
        try:
            await self._objects.create(_manifest_name(manifest.backup), sealed)
        except ObjectExists:
            manifest = await self.get_manifest(manifest.backup, key)
        # Not before there is a backup: what an attempt leaves that breaks off could not be removed.
        names = [_part_name(manifest, part) for part in manifest.parts]
        kept = (*names, _key_name(manifest.backup), _manifest_name(manifest.backup))
        await self._objects.keep(kept, manifest.expires_at)
        with contextlib.suppress(BackupStoreError):  # they go with the backup at the latest
            found = [item async for item in self._objects.list(str(manifest.backup))]
            strays = [item.name for item in found if item.name not in kept]
            await self._objects.delete(str(manifest.backup), strays)
        return manifest

    async def get_manifest(self, backup: UUID, key: BackupKey | None = None) -> BackupManifest:
        """The backup's manifest, opened with the stored key unless one is given. Raises `BackupMissing`;
        `BackupDamaged`."""
        name = _manifest_name(backup)
        sealed = await self._objects.get(name, most=MAX_MANIFEST_BYTES)
        return await asyncio.to_thread(decode, name, bytes(sealed), key or await self.stored_key(backup))

    async def delete(self, backup: UUID) -> None:
        """Deletes the backup, its manifest first: what is left of an interrupted deletion is no backup. Raises
        `BackupLocked`, and then the backup is whole."""
        await self._objects.delete(str(backup), [_manifest_name(backup)])
        await self._objects.delete_all(str(backup))

    async def walk(self) -> AsyncIterator[StoredBackup | StrayObject]:
        """All backups in the store, and all else but the audit log's seals."""
        folders, others = await self._objects.top()
        for item in others:
            yield _stray(item, None)
        for folder in folders:
            if folder == AUDIT_FOLDER:
                continue
            backup = _uuid(folder)
            found = [item async for item in self._objects.list(folder)]
            if backup and any(item.name == _manifest_name(backup) for item in found):
                yield StoredBackup(backup=backup, objects=tuple(found))
                continue
            for item in found:
                yield _stray(item, backup)

    async def find(self, backup: UUID) -> StoredBackup | None:
        """The backup in the store; None for one that has no manifest."""
        found = [item async for item in self._objects.list(str(backup))]
        whole = any(item.name == _manifest_name(backup) for item in found)
        return StoredBackup(backup=backup, objects=tuple(found)) if whole else None

    async def remove_strays(
        self, before: datetime, wanted: Callable[[UUID], Awaitable[bool]]
    ) -> AsyncIterator[StrayObject]:
        """Removes what interrupted writes and deletions have left: folders without a manifest, of which nothing was
        written since `before`, by the store's clock; `wanted` says whether such a backup may still be written, or
        should be there. What isn't ours stays."""
        for backup in await self._backups():
            found = [item async for item in self._objects.list(str(backup))]
            if not found or any(item.name == _manifest_name(backup) for item in found):
                continue
            if max(item.modified for item in found) >= before or await wanted(backup):
                continue
            await self._objects.delete_all(str(backup))
            for item in found:
                yield _stray(item, backup)

    async def reseal(self) -> AsyncIterator[ResealedKey]:
        """Seals each backup's key in the store with the newest of HEADWATER_SECRET_KEYS."""
        for backup in await self._backups():
            try:
                sealed = bytes(await self._objects.get(_key_name(backup), most=KEY_BYTES))
                fresh = keys.resealed(self._box, backup, sealed)
            except BackupMissing:
                continue
            except BackupDamaged as fault:
                yield ResealedKey(backup=backup, key_id=None, changed=False, error=str(fault))
                continue
            if fresh != sealed:
                await self._objects.put(_key_name(backup), fresh)
            # In a bucket with Object Lock it is a new version, which nothing keeps yet; so it is where a former run
            # ended before this.
            await self._objects.keep_like(_key_name(backup), _manifest_name(backup))
            yield ResealedKey(backup=backup, key_id=keys.sealed_with(fresh), changed=fresh != sealed)

    async def key_ids(self) -> Counter[str]:
        """How many backups' keys in the store are sealed with which of HEADWATER_SECRET_KEYS."""
        found = Counter[str]()
        for backup in await self._backups():
            with contextlib.suppress(BackupMissing, BackupDamaged):
                found[keys.sealed_with(bytes(await self._objects.get(_key_name(backup), most=KEY_BYTES)))] += 1
        return found

    async def _backups(self) -> list[UUID]:
        """The backups that have a folder in the store, whether they are complete or not."""
        return [backup for folder in (await self._objects.top())[0] if (backup := _uuid(folder))]

    async def _open_part(self, manifest: BackupManifest, part: Part, identity: Identity) -> AsyncIterator[bytes]:
        data = await self._get_part(manifest, part)
        try:
            pieces = await asyncio.to_thread(open_part, data, part.sha256, identity)
            del data
            steps = decompress(pieces, part.plain_length)
            while step := await asyncio.to_thread(next, steps, None):
                yield step
        except DamagedPart as fault:
            raise BackupDamaged(_part_name(manifest, part), str(fault)) from None

    async def _get_part(self, manifest: BackupManifest, part: Part) -> memoryview:
        name = _part_name(manifest, part)
        try:
            return await self._objects.get(name, most=MAX_PART_BYTES, length=part.length)
        except BackupMissing:
            raise BackupDamaged(name, "it is gone") from None


def _stray(item: ObjectInfo, backup: UUID | None) -> StrayObject:
    return StrayObject(name=item.name, length=item.length, modified=item.modified, backup=backup)


def _manifest_name(backup: UUID) -> str:
    return f"{backup}/manifest"


def _part_name(manifest: BackupManifest, part: Part) -> str:
    return f"{manifest.backup}/{part.name}"


def _key_name(backup: UUID) -> str:
    return f"{backup}/key"


def _uuid(text: str) -> UUID | None:
    try:
        value = UUID(text)
    except ValueError:
        return None
    return value if str(value) == text else None
