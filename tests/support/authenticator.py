"""An authenticator in software: a P-256 key for each passkey, and signatures as in WebAuthn level 3, section 6."""

import base64
import hashlib
import json
import os
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authenticator:
    """One passkey. `origin` is the page's, which the browser says; `verified` whether it checked who uses it."""

    def __init__(self, origin: str, *, verified: bool = True) -> None:
        self.origin = origin
        self.flags = _PRESENT | (_VERIFIED if verified else 0)
        self.credential_id = os.urandom(32)
        self.user_handle = b""
        self.count = 0
        self.attestation: dict[str, Any] = {"fmt": "none", "attStmt": {}}
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """As `navigator.credentials.create()`."""
        self.user_handle = _bytes(options["user"]["id"])
        point = self._key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cbor2.dumps(cose)
        data = self._data(options["rp"]["id"], _ATTESTED) + attested
        statement = cbor2.dumps({**self.attestation, "authData": data})
        client = self._client("webauthn.create", options["challenge"])
        response = {"clientDataJSON": _text(client), "attestationObject": _text(statement), "transports": ["internal"]}
        return self._credential(response)

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """As `navigator.credentials.get()`."""
        self.count += 1
        data = self._data(options["rpId"], 0)
        client = self._client("webauthn.get", options["challenge"])
        signature = self._key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._credential(
            {
                "clientDataJSON": _text(client),
                "authenticatorData": _text(data),
                "signature": _text(signature),
                "userHandle": _text(self.user_handle),
            }
        )

    def _data(self, host: str, more: int) -> bytes:
        flags = bytes([self.flags | more])
        return hashlib.sha256(host.encode()).digest() + flags + self.count.to_bytes(4, "big")

    def _client(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _credential(self, response: dict[str, Any]) -> dict[str, Any]:
        id = _text(self.credential_id)
        return {"id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {}}
