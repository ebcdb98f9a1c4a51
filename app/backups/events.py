"""Events about backups."""

from uuid import UUID

from app.backups import records
from app.backups.views import view
from app.outbox import events
from app.outbox.event_types import EventType


async def append_event(kind: EventType, backup: UUID) -> None:
    """Writes an event of this kind with the backup as it is now, in the transaction of the change."""
    record = await records.find(backup)
    assert record is not None, "the row was locked a moment ago"
    await events.append(kind, team_id=record.team_id, database_id=record.database_id, data=view(record))
