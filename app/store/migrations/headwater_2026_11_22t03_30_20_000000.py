"""What an operator has set for a pool, apart from what the workers go by."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:30:20:000000"
VERSION = "1.38.0"
DESCRIPTION = "pool settings apart"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def separate() -> None:
        await DB.run_ddl("UPDATE pool_targets SET setting = size, size = NULL WHERE NOT by_operator")

    # Piccolo runs this before the changes of columns.
    manager.add_raw(separate)
    manager.drop_column(
        table_class_name="PoolTarget",
        tablename="pool_targets",
        column_name="by_operator",
        db_column_name="by_operator",
        schema=None,
    )
    return manager
