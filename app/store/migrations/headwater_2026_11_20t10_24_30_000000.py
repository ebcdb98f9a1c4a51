"""One row for each finding, however often it is seen."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:24:30:000000"
VERSION = "1.38.0"
DESCRIPTION = "one row a finding"

_STATEMENTS = ("CREATE UNIQUE INDEX findings_once ON findings (rule, subject, mark, coalesce(host_id, 0))",)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_index() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(add_index)
    return manager
