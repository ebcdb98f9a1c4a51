"""What a backup is: its parts, its contents, and what is needed to bring it back without our own database."""

from datetime import datetime
from uuid import UUID

import msgspec
import zstandard

from app.backups.storage.errors import BackupDamaged
from app.backups.storage.keys import BackupKey
from app.engines.dumping import Content, DumpFormat, DumpRefused

MAX_MANIFEST_BYTES = 256 * 1024 * 1024
"""The maximum size of a manifest before compression. A part takes about 100 bytes, a table about 150."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the dump. Its plaintext is a part of the dump's bytes, in order."""

    name: str
    """Relative to the backup's folder."""
    length: int
    sha256: bytes
    """Of the object as it is stored."""
    plain_length: int


class StoredParts(msgspec.Struct, frozen=True, kw_only=True):
    """What `BackupStore.write` has written."""

    parts: tuple[Part, ...]

    @property
    def stored_bytes(self) -> int:
        return sum(part.length for part in self.parts)

    @property
    def plain_bytes(self) -> int:
        return sum(part.plain_length for part in self.parts)


class ManifestUser(msgspec.Struct, frozen=True, kw_only=True):
    """A further login of the database."""

    name: str
    db_username: str
    access: str
    connection_limit: int
    expires_at: datetime | None
    sealed_password: bytes
    """By `BackupKey.seal`."""


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A backup. It is stored encrypted, names included."""

    backup: UUID
    kind: str
    description: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    """Where the bucket has Object Lock and the setting says so, the store keeps its objects until then."""

    database: UUID
    database_name: str
    team_id: int
    team_name: str
    db_type: str
    plan: str
    limits: dict[str, float] = {}
    region: str

    db_name: str
    db_username: str
    sealed_password: bytes
    """By `BackupKey.seal`."""
    users: tuple[ManifestUser, ...] = ()

    format: DumpFormat
    consistent_at: datetime
    position: str | None = None
    parts: tuple[Part, ...]
    contents: tuple[Content, ...]

    @property
    def stored_bytes(self) -> int:
        return sum(part.length for part in self.parts)

    @property
    def plain_bytes(self) -> int:
        return sum(part.plain_length for part in self.parts)


def encode(manifest: BackupManifest, key: BackupKey) -> bytes:
    """The manifest as it is stored: MessagePack, compressed, then encrypted with the backup's key. Raises `DumpRefused`
    for one that could not be read again."""
    encoded = msgspec.msgpack.encode(manifest)
    if len(encoded) > MAX_MANIFEST_BYTES:
        raise DumpRefused(f"the list of its parts and tables takes more than {MAX_MANIFEST_BYTES} bytes")
    return key.encrypt(zstandard.compress(encoded), "manifest")


def decode(name: str, sealed: bytes, key: BackupKey) -> BackupManifest:
    """Reads a stored manifest. `name` is the object's, for the error. Raises `BackupDamaged`."""
    plain = key.decrypt(sealed, "manifest")
    try:
        with zstandard.ZstdDecompressor().stream_reader(plain) as frame:
            encoded = frame.read(MAX_MANIFEST_BYTES + 1)
        if len(encoded) > MAX_MANIFEST_BYTES:
            raise BackupDamaged(name, "it is too large")
        return msgspec.msgpack.decode(encoded, type=BackupManifest)
    except (zstandard.ZstdError, msgspec.MsgspecError) as fault:
        raise BackupDamaged(name, str(fault)) from None
