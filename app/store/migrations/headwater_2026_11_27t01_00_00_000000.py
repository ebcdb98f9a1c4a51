"""Users by their address, however its ASCII letters are written. Not unique: from before there may be two."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-27T01:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "users by their address"


class _WithIndex(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl('CREATE INDEX users_by_email ON users (lower(email COLLATE "C"))')


async def forwards() -> MigrationManager:
    return _WithIndex(migration_id=ID, app_name="headwater", description=DESCRIPTION)
