"""Until when the store itself keeps a backup that has ended."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Timestamptz

ID = "2026-11-27T00:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "backups that the store keeps"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    params = Timestamptz(null=True, default=None)._meta.params
    manager.add_column("Backup", "backups", "locked_until", column_class=Timestamptz, params=params)
    return manager
