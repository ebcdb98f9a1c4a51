"""Whether a table was being rebuilt when a database was measured, and the time before: both its files counted."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Boolean

ID = "2026-11-26T21:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "rebuilds in measurements"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    params = Boolean(default=False)._meta.params
    for column in ("rebuilding", "was_rebuilding"):
        manager.add_column("DatabaseUsage", "database_usage", column, column_class=Boolean, params=params)
    return manager
