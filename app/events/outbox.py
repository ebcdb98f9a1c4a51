"""The outbox: an event is a row, written in the transaction of the change that it tells of."""

import msgspec

from app.core.clock import utc_now
from app.core.ids import new_uuid
from app.events.types import EventType
from app.store.session import fetch

CHANNEL = "headwater_events"
"""Notices that an event was committed."""


async def append(kind: EventType, *, team_id: int, database_id: int | None, data: msgspec.Struct) -> None:
    """Call it inside the transaction of the change. `data` is the resource as clients see it, without secrets."""
    await fetch(
        "INSERT INTO events (uuid, type, database_id, team_id, payload) VALUES ($1, $2, $3, $4, $5::jsonb)"
        " RETURNING pg_notify($6, '')",
        new_uuid(),
        kind.value,
        database_id,
        team_id,
        payload_of(kind, data),
        CHANNEL,
    )


def payload_of(kind: EventType, data: msgspec.Struct) -> str:
    """JSON in the shape of interface specification section 6."""
    payload = {"event": kind.value, "timestamp": utc_now().isoformat(), "data": data}
    return msgspec.json.encode(payload).decode()
