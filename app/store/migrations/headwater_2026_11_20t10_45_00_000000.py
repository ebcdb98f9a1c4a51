"""Indexes by which history that is over is found."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:45:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "age of history"

_STATEMENTS = (
    "CREATE INDEX webhook_deliveries_over ON webhook_deliveries (finished_at) WHERE status <> 'pending'",
    "CREATE INDEX events_over ON events (created_at) WHERE dispatched_at IS NOT NULL",
    "CREATE INDEX query_executions_by_age ON query_executions (created_at)",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_indexes() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(add_indexes)
    return manager
