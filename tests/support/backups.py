"""Backups for tests of the store: a store, a dump's bytes, a manifest."""

import os
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from app.backups.storage.keys import BackupKey
from app.backups.storage.manifest import BackupManifest, StoredParts
from app.backups.storage.store import BackupStore
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.dumping import Content, DumpFormat

BOX = SecretBox({"k1": bytes(32)})
CHUNK = 1_048_576


def folder_store(folder: Path, box: SecretBox = BOX, **settings: object) -> BackupStore:
    """A store in a folder."""
    given = {"backup_store": folder.as_uri(), "backup_store_timeout_seconds": 20, **settings}
    return BackupStore.from_settings(Settings(**given), box)  # type: ignore[arg-type]


def any_store(box: SecretBox = BOX) -> BackupStore:
    """Where a test needs one and looks at no file of it."""
    return folder_store(Path(tempfile.gettempdir()) / "headwater-backups", box)


async def chunks_of(dump: bytes, size: int = CHUNK) -> AsyncIterator[bytes]:
    for start in range(0, len(dump), size):
        yield dump[start : start + size]


def random_dump(length: int) -> bytes:
    """Bytes that can't be compressed."""
    return os.urandom(length)


def manifest_of(backup: UUID, stored: StoredParts, key: BackupKey, **changes: object) -> BackupManifest:
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    values: dict[str, object] = {
        "kind": "manual",
        "created_at": now,
        "database": uuid4(),
        "database_name": "orders of a tenant",
        "team_id": 7,
        "team_name": "a team",
        "db_type": "postgres",
        "plan": "small",
        "region": "us-east-1",
        "db_name": "db_1",
        "db_username": "user_1",
        "sealed_password": key.seal("a password", "user_1"),
        "format": DumpFormat(flavour="postgres", server_version="18.1", tool="pg_dump 18.1", layout="pg_custom"),
        "consistent_at": now,
        "contents": (Content(name="public.orders", rows=3, fingerprint="f00d"),),
        **changes,
    }
    return BackupManifest(backup=backup, parts=stored.parts, **values)  # type: ignore[arg-type]


async def backed_up(store: BackupStore, dump: bytes) -> BackupManifest:
    """A backup that is complete."""
    backup = uuid4()
    key = store.new_key(backup)
    stored = await store.write(backup, key, chunks_of(dump))
    return await store.put_manifest(manifest_of(backup, stored, key), key)


async def restored(store: BackupStore, backup: UUID) -> bytes:
    """The dump, read with nothing but the store and its keys."""
    key = await store.stored_key(backup)
    manifest = await store.get_manifest(backup, key)
    return b"".join([step async for step in store.read(manifest, key)])


def files_of(folder: Path) -> dict[str, bytes]:
    """What the store in a folder holds, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
