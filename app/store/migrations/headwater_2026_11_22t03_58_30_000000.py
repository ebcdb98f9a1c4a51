"""When storage was measured, of databases that were measured before that was kept by itself."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:58:30:000000"
VERSION = "1.38.0"
DESCRIPTION = "when storage was measured"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def keep_what_was_measured() -> None:
        await DB.run_ddl("UPDATE database_usage SET storage_measured_at = measured_at")

    manager.add_raw(keep_what_was_measured)
    return manager
