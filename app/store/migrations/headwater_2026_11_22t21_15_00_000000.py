"""Applications of blueprints, read by their database."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T21:15:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "applications of blueprints, read by their database"

_INDEX = "CREATE INDEX applications_of_database ON blueprint_applications (database_id, id)"


class _WithIndex(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(_INDEX)


async def forwards() -> MigrationManager:
    return _WithIndex(migration_id=ID, app_name="headwater", description=DESCRIPTION)
