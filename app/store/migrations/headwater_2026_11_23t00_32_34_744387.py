"""How often each connection of an engine host may be promised; hosts that are there go on promising each once."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Integer

ID = "2026-11-23T00:32:34:744387"
VERSION = "1.38.0"
DESCRIPTION = "how often connections of hosts are promised"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    column = Integer(default=1)
    manager.add_column(
        "EngineHost", "engine_hosts", "connection_overcommit", column_class=Integer, params=column._meta.params
    )
    return manager
