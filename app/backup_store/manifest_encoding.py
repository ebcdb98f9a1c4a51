"""A manifest as it is stored: MessagePack, compressed, then encrypted with the backup's key."""

import msgspec
import zstandard

from app.backup_store.errors import BackupDamaged
from app.backup_store.keys import BackupKey
from app.backup_store.manifest import MAX_MANIFEST_BYTES, BackupManifest


def encode(manifest: BackupManifest, key: BackupKey) -> bytes:
    return key.encrypt(zstandard.compress(msgspec.msgpack.encode(manifest)), "manifest")


def decode(name: str, sealed: bytes, key: BackupKey) -> BackupManifest:
    """`name` is the object's, for the error. Raises `BackupDamaged`."""
    plain = key.decrypt(sealed, "manifest")
    try:
        with zstandard.ZstdDecompressor().stream_reader(plain) as frame:
            encoded = frame.read(MAX_MANIFEST_BYTES + 1)
        if len(encoded) > MAX_MANIFEST_BYTES:
            raise BackupDamaged(name, "it is too large")
        return msgspec.msgpack.decode(encoded, type=BackupManifest)
    except (zstandard.ZstdError, msgspec.MsgspecError) as fault:
        raise BackupDamaged(name, str(fault)) from None
