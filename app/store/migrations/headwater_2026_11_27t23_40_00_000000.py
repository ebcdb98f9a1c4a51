"""Applications of one blueprint, and deliveries by event and status, in the order of their lists."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-27T23:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "applications of one blueprint, and deliveries by event and status, in the order of their lists"

# Each has an order that no other index of its table has: no plan of these lists can take one that it would walk to its
# end.
_INDEXES = (
    "CREATE INDEX blueprint_applications_in_pages ON blueprint_applications (blueprint_id, (0 - id))",
    "CREATE INDEX applications_of_blueprint_to_database ON blueprint_applications (database_id, blueprint_id, (-id))",
    "CREATE INDEX webhook_deliveries_by_type ON webhook_deliveries (endpoint_id, event_type, status, (0 - id))",
    # What was read off these is read off those now.
    "DROP INDEX applications_of_blueprint",
    "DROP INDEX webhook_deliveries_failed",
    "DROP INDEX webhook_deliveries_of_event",
)


class _WithIndexes(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _INDEXES:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    return _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
