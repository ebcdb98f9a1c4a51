"""Secrets at rest: AES-256-GCM, bound to where they are stored, with rotating keys."""

import base64
import os

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
"""NIST SP 800-38D, section 8.2.2: a random 96-bit nonce."""


class InvalidSecret(Exception):
    """A sealed value can't be opened: it was changed or moved to another row, or its key is not configured."""


class SecretLocation(msgspec.Struct, frozen=True):
    """The row and column of a sealed value. The value opens nowhere else, so a stolen one can't be put into another
    row."""

    table: str
    column: str
    row: str

    def associated_data(self) -> bytes:
        return "\x00".join((self.table, self.column, self.row)).encode()


class SecretBox:
    """Seals with the first key and opens with any. A sealed value is `key id, 0x00, nonce, ciphertext`."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        """`keys` maps an id (ASCII, no NUL) to 32 bytes; the first entry seals."""
        if not keys:
            raise ValueError("at least one secret key is needed")
        for key_id, key in keys.items():
            if len(key) != 32:
                raise ValueError(f"secret key {key_id!r} has {len(key)} bytes; it must have 32")
        self._ciphers = {key_id.encode(): AESGCM(key) for key_id, key in keys.items()}
        self._sealing = next(iter(self._ciphers))

    @classmethod
    def from_setting(cls, text: str | None) -> "SecretBox":
        """Parses `id:base64,id:base64`. Raises `ValueError`, whose message shows no key."""
        keys: dict[str, bytes] = {}
        for pair in (text or "").split(","):
            key_id, colon, encoded = pair.strip().partition(":")
            if not colon or not key_id:
                raise ValueError("HEADWATER_SECRET_KEYS: expected id:base64 pairs, comma-separated")
            try:
                keys[key_id] = base64.b64decode(encoded, validate=True)
            except ValueError:
                raise ValueError(f"HEADWATER_SECRET_KEYS: key {key_id!r} is not base64") from None
        return cls(keys)

    @property
    def newest(self) -> bytes:
        """The id of the key that seals."""
        return self._sealing

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys; the one that seals comes first."""
        return tuple(key_id.decode() for key_id in self._ciphers)

    def seal(self, secret: str, place: SecretLocation) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._sealing].encrypt(nonce, secret.encode(), place.associated_data())
        return self._sealing + b"\x00" + nonce + sealed

    def open(self, sealed: bytes, place: SecretLocation) -> str:
        """Returns the secret. Raises `InvalidSecret`."""
        key_id, _, rest = sealed.partition(b"\x00")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise InvalidSecret(f"{place.table}.{place.column}: sealed with a key that is not configured")
        try:
            nonce, body = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
            return cipher.decrypt(nonce, body, place.associated_data()).decode()
        except (InvalidTag, ValueError):  # the latter for one that was cut short
            raise InvalidSecret(f"{place.table}.{place.column}: changed, or moved from another row") from None


def new_key_setting(key_id: str = "k1") -> str:
    """A new key in the form of the setting."""
    return f"{key_id}:{base64.b64encode(os.urandom(32)).decode()}"
