"""An index in the order of a list's pages."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T08:30:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "pages of databases"

_STATEMENTS = (
    "CREATE INDEX databases_in_pages ON databases (team_id, (-id)) WHERE status <> 'deleted'",
    "DROP INDEX databases_of_team",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def replace_index() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(replace_index)
    return manager
