"""The one row of `installation`, in whose place there is never another."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T13:55:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "which installation this is"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def identify() -> None:
        await DB.run_ddl("CREATE UNIQUE INDEX installation_is_one ON installation ((true))")
        await DB.run_ddl("INSERT INTO installation (id) VALUES (gen_random_uuid())")

    manager.add_raw(identify)
    return manager
