"""From a database's row to what a client sees of it: in answers, and in events."""

from uuid import UUID

import msgspec

from app.core.secrets import SecretBox
from app.databases import records
from app.databases.labels import label_map
from app.databases.passwords import password_place
from app.databases.records import DatabaseRecord
from app.databases.schemas import DatabaseView, DeletedDatabaseView
from app.engines.registry import ADAPTERS
from app.outbox import events
from app.outbox.event_types import EventType
from app.quotas.plans import Plans, limits_in_force
from app.store.session import Statement

MASK = "********"
"""In the place of a password that is not shown."""


def masked_view(plans: Plans, record: DatabaseRecord) -> DatabaseView:
    """Without the password: for lists, changes and events."""
    return _view(plans, record, MASK)


def full_view(plans: Plans, record: DatabaseRecord, box: SecretBox) -> DatabaseView:
    """With the password: for create and single get."""
    assert record.password_sealed is not None, "a database that is not deleted has a password"
    password = box.open(record.password_sealed, password_place(record.uuid))
    view = _view(plans, record, password)
    view.db_password = password
    return view


def deleted_view(plans: Plans, record: DatabaseRecord, final_backup: UUID | None = None) -> DeletedDatabaseView:
    """Of a deleted one, without its password; `final_backup` is the uuid of its completed final backup."""
    assert record.deleted_at is not None, "it is deleted"
    assert record.destroy_at is not None, "a deletion says when"
    return DeletedDatabaseView(
        **msgspec.structs.asdict(masked_view(plans, record)),
        deleted_at=record.deleted_at,
        destroy_scheduled_at=record.destroy_at,
        final_backup_uuid=final_backup,
    )


def _view(plans: Plans, record: DatabaseRecord, password: str) -> DatabaseView:
    return DatabaseView(
        uuid=record.uuid,
        name=record.name,
        status=record.status,
        region=record.region,
        plan=record.plan,
        quotas=record.quotas,
        limits=limits_in_force(plans, record.plan, record.quotas),
        db_type=record.engine,
        host=record.host,
        port=record.port,
        db_name=record.engine_name,
        db_username=record.login,
        team_id=record.team_id,
        team_name=record.team_name,
        connection_string=connection_string(record, record.login, password),
        deletion_protection=record.deletion_protection,
        expires_at=record.expires_at,
        labels=label_map(record.labels),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def connection_string(record: DatabaseRecord, login: str, password: str) -> str:
    """A URI for an account of the database, as its engine's clients take it."""
    scheme = ADAPTERS[record.engine].uri_scheme
    host = f"[{record.host}]" if ":" in record.host else record.host
    return f"{scheme}://{login}:{password}@{host}:{record.port}/{record.engine_name}"


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
