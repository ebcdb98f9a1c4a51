"""An index in the order in which the warm pool's databases are claimed."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:55:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "order of claims"

_STATEMENTS = (
    "DROP INDEX databases_in_pool",
    "CREATE INDEX databases_in_pool ON databases (engine, position) WHERE team_id IS NULL AND destroyed_at IS NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def replace_index() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(replace_index)
    return manager
