from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Boolean

ID = "2026-11-23T05:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "restore tests of the schedule"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    scheduled = Boolean(default=False)
    manager.add_column(
        "Backup", "backups", "proof_scheduled", column_class=type(scheduled), params=scheduled._meta.params
    )
    return manager
