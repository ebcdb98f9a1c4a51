"""A workflow's start is promised once for each id, as before; each promised signal has a row of its own. Deleted
databases have the workflow that was asked for when they were deleted."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:31:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "promised signals"

_STATEMENTS = (
    "UPDATE databases SET deletion_revision = 1 WHERE status = 'deleted'",
    "CREATE UNIQUE INDEX workflow_starts_one_start ON workflow_starts (workflow_id) WHERE signal IS NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def change() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(change)
    return manager
