"""The restorations of a database, ended ones too: whether it is whole, and what it was last restored from."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-26T15:12:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "the restorations of a database"


class _WithIndex(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl("CREATE INDEX restorations_of_database ON restorations (database_id, id)")


async def forwards() -> MigrationManager:
    return _WithIndex(migration_id=ID, app_name="headwater", description=DESCRIPTION)
