"""The index by which a team's deleted databases that still lie on hosts are found."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:50:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "deleted databases"

_INDEX = """
CREATE INDEX databases_deleted_held ON databases (team_id, destroy_at)
WHERE status = 'deleted' AND destroyed_at IS NULL
"""


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_index() -> None:
        await DB.run_ddl(_INDEX)

    manager.add_raw(add_index)
    return manager
