"""Questions read by who asked them, deliveries by their status and event."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T21:32:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "questions read by who asked them, deliveries by their status and event"

_INDEXES = (
    "CREATE INDEX query_executions_of_user ON query_executions (user_id, id)",
    "CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (endpoint_id, id) WHERE status = 'failed'",
    "CREATE INDEX webhook_deliveries_of_event ON webhook_deliveries (endpoint_id, event_type, id)",
)


class _WithIndexes(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _INDEXES:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    return _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
