"""Applications of blueprints by their end: the old ones are removed."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-27T00:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "applications of blueprints by their end"

_INDEX = "CREATE INDEX applications_over ON blueprint_applications (completed_at) WHERE completed_at IS NOT NULL"


class _WithIndex(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(_INDEX)


async def forwards() -> MigrationManager:
    return _WithIndex(migration_id=ID, app_name="headwater", description=DESCRIPTION)
