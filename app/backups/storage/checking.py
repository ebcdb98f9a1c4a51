"""Comparing what the store holds of a backup with the backup's own manifest."""

import msgspec

from app.backups.storage.errors import BackupDamaged, BackupMissing
from app.backups.storage.manifest import BackupManifest
from app.backups.storage.store import BackupStore, StoredBackup


class CheckedBackup(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of a backup. It is whole if there are no `faults`."""

    manifest: BackupManifest | None
    """None if it can't be read."""
    readable: bool
    """Whether its parts can be read without another identity."""
    faults: tuple[BackupDamaged, ...]
    strays: tuple[str, ...]
    """Objects in the backup's folder that are not part of it."""


async def check_backup(store: BackupStore, stored: StoredBackup, *, deep: bool) -> CheckedBackup:
    """Checks the sizes of a backup's objects; if `deep`, their contents too, as far as they can be read. Raises
    `StoreUnavailable` and `StoreRefused`."""
    try:
        key = await store.stored_key(stored.backup)
        manifest = await store.get_manifest(stored.backup, key)
    except (BackupDamaged, BackupMissing) as fault:
        damage = fault if isinstance(fault, BackupDamaged) else BackupDamaged(str(stored.backup), str(fault))
        return CheckedBackup(manifest=None, readable=False, faults=(damage,), strays=())
    lengths = {item.name: item.length for item in stored.objects}
    faults = []
    for part in manifest.parts:
        name = f"{manifest.backup}/{part.name}"
        length = lengths.pop(name, None)
        try:
            if length is None:
                raise BackupDamaged(name, "it is gone")
            if length != part.length:
                raise BackupDamaged(name, f"it has {length} bytes, and the manifest says {part.length}")
            if deep:
                await store.check_part(manifest, part, key)
        except BackupDamaged as damage:
            faults.append(damage)
    strays = tuple(name for name in lengths if name.rpartition("/")[2] not in ("key", "manifest"))
    return CheckedBackup(manifest=manifest, readable=key.identity is not None, faults=tuple(faults), strays=strays)
