"""Lists of operations by type and status."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-26T14:50:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "lists of operations by type and status"

# No other index has this order: no plan of these lists can take one that it would walk to its end.
_INDEXES = (
    "CREATE INDEX operations_of_team_by_type ON operations (team_id, type, status, (0 - id))",
    "CREATE INDEX operations_of_database_by_type ON operations (database_id, type, status, (0 - id))",
)


class _WithIndexes(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _INDEXES:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    return _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
