"""Everything that the audit log has, line by line as JSON: an export can be verified without our own database.

The first line says when it was made and since when events are kept. Each seal follows the events that it covers; those
that are not sealed yet come last.
"""

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.audit.chain import Seal, event_fields
from app.audit.records import in_order
from app.core.clock import utc_now
from app.store.columns import columns_of
from app.store.session import fetch_all
from app.store.tables.audit import AuditSeal

_SEALS = f"""
SELECT {columns_of(AuditSeal, "s")}, l.leaves
FROM audit_seals s LEFT JOIN audit_leaves l ON l.id = s.id AND l.at = s.at
WHERE s.id > $1 ORDER BY s.id LIMIT 20
"""  # noqa: S608 - our own words


class _StoredSeal(Seal, frozen=True, kw_only=True):
    leaves: bytes | None
    """None when they were dropped with the events."""


async def export(kept_since: datetime) -> AsyncIterator[dict[str, Any]]:
    """The lines of the export. Events from before `kept_since` may have been dropped."""
    yield {"record": "export", "at": utc_now().isoformat(), "kept_since": kept_since.astimezone(UTC).isoformat()}
    # Read ahead of the events: what is sealed meanwhile would be missing among those that were read before.
    last = await fetch_all(_Last, "SELECT coalesce(max(id), 0) AS id FROM audit_seals")
    seals = _seals(last[0].id)
    seal = await anext(seals, None)
    async for events in in_order():
        for event in events:
            while seal is not None and (event.batch, event.id) > (seal.batch, seal.last_id):
                yield _seal_fields(seal)
                seal = await anext(seals, None)
            yield {"record": "event", **event_fields(event)}
    while seal is not None:
        yield _seal_fields(seal)
        seal = await anext(seals, None)


class _Last(msgspec.Struct, frozen=True):
    id: int


async def _seals(last: int) -> AsyncIterator[_StoredSeal]:
    after = 0
    while after < last:
        found = [seal for seal in await fetch_all(_StoredSeal, _SEALS, after) if seal.id <= last]
        if not found:
            return
        for seal in found:
            yield seal
        after = found[-1].id


def _seal_fields(seal: _StoredSeal) -> dict[str, Any]:
    return {
        "record": "seal",
        "id": seal.id,
        "at": seal.at.astimezone(UTC).isoformat(),
        "batch": seal.batch,
        "last_id": seal.last_id,
        "events": seal.events,
        "leaves_hash": seal.leaves_hash.hex(),
        "previous": seal.previous.hex(),
        "hash": seal.hash.hex(),
        "leaves": None if seal.leaves is None else base64.b64encode(seal.leaves).decode(),
    }
