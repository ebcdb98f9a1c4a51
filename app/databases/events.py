"""Events about databases."""

from uuid import UUID

from app.databases import records
from app.databases.records import DatabaseRecord
from app.databases.views import masked_view
from app.outbox import events
from app.outbox.event_types import EventType
from app.quotas.plans import Plans
from app.store.session import Statement


async def append_event(plans: Plans, kind: EventType, database: UUID) -> None:
    """Writes an event of this kind with the database as it is now, in the transaction of the change."""
    record = await records.find(database)
    assert record is not None, "the row was locked a moment ago"
    await append_event_for(plans, kind, record)


async def append_event_for(plans: Plans, kind: EventType, record: DatabaseRecord) -> None:
    """The same with the row as the caller has just read it. A member of the warm pool has no team that could get
    events: nothing is written for it."""
    if record.team_id is not None:
        await events.append(kind, team_id=record.team_id, database_id=record.id, data=masked_view(plans, record))


def event_insertion(plans: Plans, kind: EventType, record: DatabaseRecord) -> Statement:
    """The same as one step of a change, for a database that has a team. `Notices` are to be sent after the commit."""
    assert record.team_id is not None, "a member of the warm pool has no events"
    return events.insertion(kind, team_id=record.team_id, database_id=record.id, data=masked_view(plans, record))
