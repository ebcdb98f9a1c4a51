"""From a database's row to what a client sees of it: in answers, and in events."""

from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, PauseReason
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.labels import label_map
from app.databases.passwords import password_place
from app.databases.records import DatabaseRecord
from app.databases.schemas import DatabaseView, DeletedDatabaseView, StatusReason
from app.engines.registry import ADAPTERS
from app.outbox import events
from app.outbox.event_types import EventType
from app.quotas.plans import Limits, Plans, limits_in_force
from app.store.session import Statement

MASK = "********"
"""Shown in the place of a password."""
_FROZEN = StatusReason(
    code="frozen", message="Its storage reached the limit: it reads and deletes, and writes nothing."
)
_RESTORING = StatusReason(code="restoring", message="Its data is being exchanged; nobody is let in meanwhile.")
_RESUMING = StatusReason(code="resuming", message="It is being opened again.")
_PAUSED = {
    PauseReason.TEAM: StatusReason(code="team", message="Its team paused it."),
    PauseReason.OPERATOR: StatusReason(
        code="operator", message="An operator paused it, and only an operator resumes it."
    ),
    PauseReason.RUNTIME: StatusReason(code="runtime", message="Its plan's hours of this month are used up."),
    PauseReason.STORAGE: StatusReason(
        code="storage", message="It grew although its writes were frozen at the storage limit."
    ),
}


def masked_view(plans: Plans, record: DatabaseRecord) -> DatabaseView:
    """The view without the password: for lists, changes and events."""
    return _view(plans, record, MASK)


def full_view(plans: Plans, record: DatabaseRecord, box: SecretBox) -> DatabaseView:
    """The view with the password: for create and single get."""
    assert record.password_sealed is not None, "a database that is not deleted has a password"
    password = box.open(record.password_sealed, password_place(record.uuid))
    view = _view(plans, record, password)
    view.db_password = password
    view.tls_ca = record.tls_ca
    held = record.connections_held
    view.connections_limited_to = held if held is not None and held < record.connections else None
    return view


def deleted_view(plans: Plans, record: DatabaseRecord, final_backup: UUID | None = None) -> DeletedDatabaseView:
    """The view of a deleted database, without its password; `final_backup` is the uuid of its completed final
    backup."""
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
        status_reason=status_reason(record),
        region=record.region,
        plan=record.plan,
        quotas=record.quotas,
        limits=_limits(plans, record),
        db_type=record.engine,
        host=record.host,
        port=record.port,
        tls_mode=record.tls,
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


def _limits(plans: Plans, record: DatabaseRecord) -> Limits:
    """The limits in force. Their connections are the row's: users keep theirs where the plan has become smaller than
    that, and a plan that changed is followed a while later."""
    limits = limits_in_force(plans, record.plan, record.quotas)
    return msgspec.structs.replace(limits, connection_hard_limit=record.connections)


def status_reason(record: DatabaseRecord) -> StatusReason | None:
    """Why the database is not simply open; None where it is open, and where its operations say why."""
    if record.status is DatabaseStatus.ACTIVE:
        return None if record.frozen_at is None else _FROZEN
    if record.status is not DatabaseStatus.PAUSED:
        return None
    if record.restoring_at is not None:
        return _RESTORING
    return _RESUMING if record.paused_reason is None else _PAUSED[record.paused_reason]


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
