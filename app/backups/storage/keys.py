"""The key of a backup.

Each backup has an age identity of its own, to which its parts are encrypted, and a random key for its manifest. Both
are sealed together with HEADWATER_SECRET_KEYS. With a recipient of the operator's the age identity is encrypted to that
one first: then only the operator's identity opens the parts, while the manifest still needs HEADWATER_SECRET_KEYS, so
that nobody else can make one.
"""

import base64
import os
from collections.abc import Sequence
from uuid import UUID

import msgspec
import pyrage
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyrage.x25519 import Identity, Recipient

from app.backups.storage.errors import BackupDamaged, KeyUnknown
from app.core.secrets import InvalidSecret, SecretBox, SecretLocation

_NONCE_BYTES = 12
_LONGEST_ID = 100
"""The most characters shown of the id of a secret key."""
KEY_BYTES = 65_536
"""The maximum size of a sealed key."""


class KeyMaterial(msgspec.Struct, frozen=True, kw_only=True):
    """What a sealed key contains."""

    recipient: str
    """The public part of the backup's own identity."""
    identity: str | None
    encrypted_identity: bytes | None = None
    """In place of `identity`: the same, in the age format, for the operator's recipient."""
    manifest_key: bytes


class BackupKey:
    """Opens and seals what belongs to one backup. `sealed` is what our row and the store keep of it."""

    def __init__(self, backup: UUID, sealed: bytes, material: KeyMaterial, identity: Identity | None) -> None:
        self.backup = backup
        self.sealed = sealed
        self.recipient = Recipient.from_str(material.recipient)
        self.identity = identity
        """None when only the operator's identity can read the parts."""
        self.material = material
        self._cipher = AESGCM(material.manifest_key)

    def seal(self, secret: str, name: str) -> bytes:
        """Seals a secret within the manifest. It can be opened as long as the backup's key can, whatever becomes of
        today's HEADWATER_SECRET_KEYS."""
        return self.encrypt(secret.encode(), f"secret {name}")

    def open(self, sealed: bytes, name: str) -> str:
        """Raises `BackupDamaged`."""
        return self.decrypt(sealed, f"secret {name}").decode()

    def encrypt(self, plain: bytes, purpose: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, self._associated_data(purpose))

    def decrypt(self, sealed: bytes, purpose: str) -> bytes:
        """Raises `BackupDamaged`."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._associated_data(purpose))
        except (InvalidTag, ValueError):  # the latter for one that was cut short
            raise BackupDamaged(
                f"{self.backup}/manifest", f"its {purpose} was changed, or belongs to another backup"
            ) from None

    def _associated_data(self, purpose: str) -> bytes:
        return f"headwater backup 1\x00{self.backup}\x00{purpose}".encode()


def new_key(box: SecretBox, backup: UUID, operator: Recipient | None = None) -> BackupKey:
    """A key for a new backup. With `operator` it can encrypt only."""
    identity = Identity.generate()
    text = str(identity)
    material = KeyMaterial(
        recipient=str(identity.to_public()),
        identity=None if operator else text,
        encrypted_identity=pyrage.encrypt(text.encode(), [operator]) if operator else None,
        manifest_key=os.urandom(32),
    )
    return BackupKey(backup, _seal(box, backup, material), material, None if operator else identity)


def open_key(box: SecretBox, backup: UUID, sealed: bytes, identities: Sequence[Identity] = ()) -> BackupKey:
    """Opens a sealed key. `identities` are the operator's. Without the right one, a key for an operator's recipient can
    read the manifest alone. Raises `BackupDamaged`, and its kind `KeyUnknown`."""
    if sealed_with(sealed) not in box.key_ids:
        raise KeyUnknown(f"{backup}/key", "it is sealed with a key that is not in HEADWATER_SECRET_KEYS")
    try:
        text = box.open(sealed, key_place(backup))
        material = msgspec.msgpack.decode(base64.b64decode(text), type=KeyMaterial)
        return BackupKey(backup, sealed, material, _identity(material, identities))
    except (InvalidSecret, ValueError, pyrage.IdentityError, pyrage.RecipientError) as fault:
        raise BackupDamaged(f"{backup}/key", str(fault)) from None


def resealed(box: SecretBox, backup: UUID, sealed: bytes) -> bytes:
    """The same key, sealed with the newest of HEADWATER_SECRET_KEYS. Raises `BackupDamaged`."""
    if sealed_with(sealed) == box.newest.decode():
        return sealed
    try:
        return box.seal(box.open(sealed, key_place(backup)), key_place(backup))
    except InvalidSecret as fault:
        raise BackupDamaged(f"{backup}/key", str(fault)) from None


def readable(box: SecretBox, key: BackupKey) -> bytes:
    """The key, sealed so that it opens without the operator's identity. The key has to have been opened with that
    identity."""
    assert key.identity is not None, "it was opened"
    return _seal(box, key.backup, msgspec.structs.replace(key.material, identity=str(key.identity)))


def sealed_with(sealed: bytes) -> str:
    """The id of the secret key that opens a sealed key."""
    return sealed.partition(b"\x00")[0][:_LONGEST_ID].decode(errors="replace")


def key_place(backup: UUID) -> SecretLocation:
    """Where a sealed key belongs: in our row, and in the store beside the backup."""
    return SecretLocation("backups", "wrapped_key", str(backup))


def _seal(box: SecretBox, backup: UUID, material: KeyMaterial) -> bytes:
    return box.seal(base64.b64encode(msgspec.msgpack.encode(material)).decode(), key_place(backup))


def _identity(material: KeyMaterial, identities: Sequence[Identity]) -> Identity | None:
    if material.identity is not None:
        return Identity.from_str(material.identity)
    if not identities or material.encrypted_identity is None:
        return None
    try:
        return Identity.from_str(pyrage.decrypt(material.encrypted_identity, list(identities)).decode())
    except pyrage.DecryptError:
        return None
