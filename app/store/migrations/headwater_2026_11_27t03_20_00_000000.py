"""Completed backups by their database, which may be gone: what expires is looked for among all of one's."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-27T03:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "completed backups by their database"


class _WithIndex(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(
            "CREATE INDEX backups_completed_of ON backups (database_uuid, consistent_at) WHERE status = 'completed'"
        )


async def forwards() -> MigrationManager:
    return _WithIndex(migration_id=ID, app_name="headwater", description=DESCRIPTION)
