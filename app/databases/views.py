"""From a database's row to what a client sees of it."""

from uuid import UUID

import msgspec

from app.core.secrets import SecretBox
from app.databases.passwords import password_place
from app.databases.records import DatabaseRecord
from app.databases.schemas import DatabaseView, DeletedDatabaseView
from app.engines.registry import ADAPTERS
from app.quotas.plans import Plans, limits_in_force

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
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def connection_string(record: DatabaseRecord, login: str, password: str) -> str:
    """A URI for an account of the database, as its engine's clients take it."""
    scheme = ADAPTERS[record.engine].uri_scheme
    host = f"[{record.host}]" if ":" in record.host else record.host
    return f"{scheme}://{login}:{password}@{host}:{record.port}/{record.engine_name}"
