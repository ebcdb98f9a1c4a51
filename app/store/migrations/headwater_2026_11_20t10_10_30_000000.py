"""Indexes of what counts against a day's allowance, and of what is under way."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:10:30:000000"
VERSION = "1.38.0"
DESCRIPTION = "allowance of questions"

_STATEMENTS = (
    "CREATE INDEX query_executions_of_day ON query_executions (team_id, created_at) WHERE counts IS NOT FALSE",
    "CREATE INDEX query_executions_under_way ON query_executions (team_id) WHERE outcome IS NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_indexes() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(add_indexes)
    return manager
