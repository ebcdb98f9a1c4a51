"""Verifying signatures as a receiver does, written from the specification and not from the code under test."""

import base64
import hashlib
import hmac

from tests.support.receiver import Received


def verify(received: Received, secret: str) -> None:
    """Fails unless both signatures are this secret's over the bytes that arrived."""
    hexed = hmac.new(secret.encode("ascii"), received.body, hashlib.sha256).hexdigest()
    assert received.headers["x-service-signature"] == f"sha256={hexed}"
    assert standard(received, secret) in received.headers["webhook-signature"].split(" ")


def standard(received: Received, secret: str) -> str:
    """The Standard Webhooks signature under this secret."""
    assert secret.startswith("whsec_")
    key = base64.b64decode(secret[len("whsec_") :], validate=True)
    signed = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}.".encode() + received.body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
