"""Signatures over the raw bytes that are sent. Interface specification, section 6, and beside it Standard Webhooks."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SERVICE_SIGNATURE = "X-Service-Signature"
SERVICE_SIGNATURE_PREVIOUS = "X-Service-Signature-Previous"
SERVICE_EVENT = "X-Service-Event"


def new_secret() -> str:
    """`whsec_` and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def service_signature(secret: str, body: bytes) -> str:
    """Keyed with the secret as it was shown, all of it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(secret: str, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Keyed with the bytes that the secret's base64 encodes. `timestamp` is in seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(
    signing: Sequence[str], *, event: str, webhook_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """`signing` are the secrets in force, the newest first: the others are those that it has lately replaced."""
    newest, *previous = signing
    headers = {
        SERVICE_SIGNATURE: service_signature(newest, body),
        SERVICE_EVENT: event,
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(standard_signature(secret, webhook_id, timestamp, body) for secret in signing),
    }
    if previous:
        headers[SERVICE_SIGNATURE_PREVIOUS] = service_signature(previous[0], body)
    return headers
