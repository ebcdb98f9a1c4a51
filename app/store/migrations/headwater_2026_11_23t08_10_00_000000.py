from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Integer

ID = "2026-11-23T08:10:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "what the databases of a host may take"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    storage = Integer(null=True, default=None)
    manager.add_column(
        "EngineHost", "engine_hosts", "storage_gb", column_class=type(storage), params=storage._meta.params
    )
    return manager
