"""Identifiers and passwords that Headwater generates."""

import base64
import hashlib
import os
import re
import secrets
import uuid

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_uuid() -> uuid.UUID:
    """A resource's public identifier."""
    return uuid.uuid4()


def find_uuid(text: str) -> uuid.UUID | None:
    """The first uuid in a text, such as a workflow's id."""
    found = _UUID.search(text)
    return uuid.UUID(found[0]) if found else None


def request_id() -> str:
    """The id of a request: in the answer's body and header, and in every log line of the request."""
    return f"req_{os.urandom(12).hex()}"


def engine_name() -> str:
    """The name of a tenant's database and role on its host: 23 characters of `[a-z2-7]`.

    Opaque, because every tenant of a shared server can list them all; without `_`, which MySQL's GRANT reads
    as a wildcard; short enough for MySQL's 32-character user names, suffixes included.
    """
    return "t" + base64.b32encode(secrets.token_bytes(14)).decode().lower()[:22]


def engine_password() -> str:
    """A tenant's password: 32 characters that need no escaping in a URI, a shell or SQL (190 bits)."""
    alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    return "".join(secrets.choice(alphabet) for _ in range(32))


def marker(database_uuid: uuid.UUID) -> str:
    """The marker of a database on its host, by which it is recognised as ours; nothing else is ever touched. It is a
    digest, because PostgreSQL shows such comments to every tenant."""
    digest = hashlib.sha256(b"headwater marker " + database_uuid.bytes).hexdigest()
    return f"headwater:{digest[:32]}"


def scratch_marker(application: int) -> str:
    """The marker of the temporary copy on which an application of a blueprint is rehearsed."""
    digest = hashlib.sha256(f"headwater scratch {application}".encode()).hexdigest()
    return f"headwater:{digest[:32]}"
