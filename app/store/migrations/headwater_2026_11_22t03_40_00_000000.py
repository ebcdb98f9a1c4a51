"""What is asked of an engine host's certificate. Hosts that are registered keep what they had: encrypted where the
server offers it."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "TLS of engine hosts"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_columns() -> None:
        await DB.run_ddl("ALTER TABLE engine_hosts ADD COLUMN tls text NOT NULL DEFAULT 'prefer'")
        await DB.run_ddl("ALTER TABLE engine_hosts ADD COLUMN tls_ca text DEFAULT NULL")

    manager.add_raw(add_columns)
    return manager
