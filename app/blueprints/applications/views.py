"""From an application's row to what a client sees of it."""

from msgspec import UNSET

from app.blueprints.applications import records
from app.blueprints.applications.records import ApplicationRecord
from app.blueprints.applications.schemas import ApplicationView
from app.blueprints.records import decoded, sql_of


async def view(record: ApplicationRecord, *, with_sql: bool = False, with_log: bool = True) -> ApplicationView:
    """An application as a client sees it; `with_sql` is for a single get, and a list is without the log."""
    log = await records.log_of(record.id) if with_log else None
    sql = await sql_of(record.blueprint_id, record.blueprint_version) if with_sql else UNSET
    return ApplicationView(
        id=record.id,
        blueprint_id=record.blueprint_id,
        blueprint_uuid=record.blueprint_uuid,
        blueprint_version=record.blueprint_version,
        database_instance_id=record.database_id,
        database_uuid=record.database,
        database_name=record.database_name,
        status=record.status,
        is_dry_run=record.is_dry_run,
        execution_log=log or None,
        total_duration_ms=record.total_duration_ms,
        statements_total=record.statements_total,
        statements_succeeded=record.statements_succeeded,
        statements_failed=record.statements_failed,
        error_message=record.error_message,
        variable_values=decoded(record.shown_json),
        sql_content=sql,
        started_at=record.started_at,
        completed_at=record.completed_at,
        created_at=record.created_at,
    )
