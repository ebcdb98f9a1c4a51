from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Timestamptz
ID = "2026-11-23T12:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "when the destruction of a database began"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    began = Timestamptz(null=True, default=None)
    manager.add_column(
        "Database", "databases", "destruction_began_at", column_class=type(began), params=began._meta.params
    )
    return manager
