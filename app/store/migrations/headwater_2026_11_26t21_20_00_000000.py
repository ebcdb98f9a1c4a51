"""Whether a table was being rebuilt when a database was measured: its old and its new file counted then."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Boolean

ID = "2026-11-26T21:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "rebuilds in measurements"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    manager.add_column(
        "DatabaseUsage",
        "database_usage",
        "rebuilding",
        column_class=Boolean,
        params=Boolean(default=False)._meta.params,
    )
    return manager
