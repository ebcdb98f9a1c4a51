"""An index in the order in which finished deliveries are swept."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T11:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "finished deliveries"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def create_index() -> None:
        await DB.run_ddl(
            "CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE status <> 'pending'"
        )

    manager.add_raw(create_index)
    return manager
