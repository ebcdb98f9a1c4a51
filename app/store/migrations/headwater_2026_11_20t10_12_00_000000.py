"""Indexes for the pages of endpoints and deliveries, and for what is still to be delivered to an endpoint."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:12:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "pages of webhooks"

_INDEXES = (
    "CREATE INDEX webhook_endpoints_of_team ON webhook_endpoints (team_id, id)",
    "CREATE INDEX webhook_deliveries_in_pages ON webhook_deliveries (endpoint_id, id)",
    "CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id) WHERE status = 'pending'",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def create_indexes() -> None:
        for index in _INDEXES:
            await DB.run_ddl(index)

    manager.add_raw(create_indexes)
    return manager
