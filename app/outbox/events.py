"""The outbox: an event is a row, written in the same transaction as the change that it reports."""

from datetime import timedelta
from typing import Any

import msgspec

from app.core.clock import utc_now
from app.core.debounce import Debouncer
from app.core.ids import new_uuid
from app.core.tracing.context import causing_traceparent
from app.outbox.event_types import EventType
from app.store.session import Statement, execute, fetch_values

CHANNEL = "headwater_events"
"""PostgreSQL notifications that an event was committed."""
_NOTICE_SECONDS = 0.01
"""The delay after the commit, so that dispatching the event doesn't compete with the answer."""


class Notices:
    """Notifies the dispatcher of events whose own transaction sends no notification: sending one would make that
    transaction wait for all others that do. If a notification is lost, the event waits until the dispatcher's next
    poll."""

    def __init__(self) -> None:
        self._debouncer = Debouncer(_NOTICE_SECONDS, notify_dispatcher, lost="event_notice_lost")

    def send_soon(self) -> None:
        self._debouncer.schedule()

    async def close(self) -> None:
        """Sends what is still to be sent."""
        await self._debouncer.close()


_INSERT = """
INSERT INTO events (uuid, type, database_id, team_id, payload, traceparent)
SELECT $1, $2, $3::bigint, $4::bigint, $5::jsonb, $6 WHERE {condition} RETURNING
"""


async def append(kind: EventType, *, team_id: int, database_id: int | None, data: msgspec.Struct) -> None:
    """Writes an event. Call it inside the transaction of the change. `data` is the resource as clients see it, without
    secrets."""
    event = _arguments(kind, team_id, database_id, data)
    await execute(_INSERT.format(condition="true") + "pg_notify($7, '')", *event, CHANNEL)


def insertion(kind: EventType, *, team_id: int, database_id: int | None, data: msgspec.Struct) -> Statement:
    """The same as one step of a change, without the notice: have `Notices` send that after the commit."""
    return Statement(_INSERT + "id", _arguments(kind, team_id, database_id, data))


def _arguments(kind: EventType, team_id: int, database_id: int | None, data: msgspec.Struct) -> tuple[Any, ...]:
    return new_uuid(), kind.value, database_id, team_id, payload_of(kind, data), causing_traceparent()


async def take_undispatched(limit: int) -> list[int]:
    """The ids of events that nobody has dispatched yet, oldest first. They count as dispatched when the transaction
    commits; what another process has taken is passed over."""
    return await fetch_values(
        int,
        """
        WITH taken AS (
            UPDATE events SET dispatched_at = now()
            WHERE id IN (SELECT id FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
            RETURNING id
        )
        SELECT id FROM taken ORDER BY id
        """,
        limit,
    )


async def notify_dispatcher() -> None:
    """Wakes the webhook workers, with the commit."""
    await execute("SELECT pg_notify($1, '')", CHANNEL)


async def delete_old_events(limit: int, age: timedelta) -> int:
    """Deletes dispatched events that are older than `age`, after their deliveries: a delivery that is pending still
    sends the event. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM events WHERE id IN (
            SELECT id FROM events e WHERE dispatched_at IS NOT NULL AND created_at < now() - $2::interval
              -- One by one, off the index: where it may join, a plan reads all deliveries that there are.
              AND (SELECT d.id FROM webhook_deliveries d WHERE d.event_id = e.id LIMIT 1) IS NULL
            ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        limit,
        age,
    )


def payload_of(kind: EventType, data: msgspec.Struct) -> str:
    """JSON in the shape of interface specification section 6."""
    payload = {"event": kind.value, "timestamp": utc_now().isoformat(), "data": data}
    return msgspec.json.encode(payload).decode()
