"""The chain over the events: what is hashed, and how. Nothing here reads our own database, so that an export is
verified without one.

An event's leaf is its id, its time and the SHA-256 of all its fields as JSON with sorted names. A seal's hash is over
its own fields, the SHA-256 of its leaves, and the hash of the seal before.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.audit.records import EventRecord

GENESIS = bytes(32)
"""What the first seal has in place of the hash of the seal before."""
_LEAF = struct.Struct(">qq32s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Leaf(msgspec.Struct, frozen=True):
    id: int
    at: datetime
    hash: bytes


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `audit_seals`. It covers the events after the previous seal's up to `last_id` of `batch`."""

    id: int
    """Counts from 1, without gaps."""
    at: datetime
    batch: int
    last_id: int
    events: int
    leaves_hash: bytes
    previous: bytes
    hash: bytes


def event_fields(record: EventRecord) -> dict[str, Any]:
    """The fields of an event, as it is exported and hashed."""
    fields = msgspec.structs.asdict(record)
    del fields["changes_json"]
    return fields | {"at": record.at.astimezone(UTC).isoformat(), "changes": record.changes}


def leaf_of(fields: dict[str, Any]) -> Leaf:
    """Raises `KeyError`, `TypeError` or `ValueError` for what is no event."""
    encoded = msgspec.json.encode(fields, order="deterministic")
    return Leaf(int(fields["id"]), datetime.fromisoformat(fields["at"]), hashlib.sha256(encoded).digest())


def pack(leaves: Iterable[Leaf]) -> bytes:
    return b"".join(_LEAF.pack(one.id, (one.at - _EPOCH) // _MICROSECOND, one.hash) for one in leaves)


def unpack(leaves: bytes) -> list[Leaf]:
    """The leaves in these bytes. Raises `ValueError` if the last one isn't whole."""
    if len(leaves) % _LEAF.size:
        raise ValueError("the leaves are not whole")
    return [Leaf(id, _EPOCH + at * _MICROSECOND, digest) for id, at, digest in _LEAF.iter_unpack(leaves)]


def new_seal(previous: Seal | None, at: datetime, events: Sequence[EventRecord]) -> tuple[Seal, bytes]:
    """The seal over these events, which are in their order, and its leaves."""
    leaves = pack(leaf_of(event_fields(event)) for event in events)
    seal = Seal(
        id=1 if previous is None else previous.id + 1,
        at=at,
        batch=events[-1].batch,
        last_id=events[-1].id,
        events=len(events),
        leaves_hash=hashlib.sha256(leaves).digest(),
        previous=GENESIS if previous is None else previous.hash,
        hash=b"",
    )
    return msgspec.structs.replace(seal, hash=hash_of(seal)), leaves


def hash_of(seal: Seal) -> bytes:
    """What the seal's hash has to be."""
    parts = [
        seal.id,
        (seal.at - _EPOCH) // _MICROSECOND,
        seal.batch,
        seal.last_id,
        seal.events,
        seal.leaves_hash.hex(),
        seal.previous.hex(),
    ]
    return hashlib.sha256(msgspec.json.encode(parts)).digest()
