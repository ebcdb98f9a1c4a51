"""Lists in the order of `position`, and what the warm pool looks for."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:10:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "order of lists, members of the warm pool"

_STATEMENTS = (
    "UPDATE databases SET position = id",
    "SELECT setval(pg_get_serial_sequence('databases', 'position'), (SELECT coalesce(max(id), 0) + 1 FROM databases))",
    "CREATE INDEX databases_in_order ON databases (team_id, (-position)) WHERE status <> 'deleted'",
    "DROP INDEX databases_in_pages",
    "CREATE INDEX databases_in_pool ON databases (engine, region, id) WHERE team_id IS NULL AND destroyed_at IS NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def order_by_position() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(order_by_position)
    return manager
