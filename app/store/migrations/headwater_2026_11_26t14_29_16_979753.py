"""The team that the answer of an idempotency key is of: who has left it is not given the answer."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import BigInt

ID = "2026-11-26T14:29:16:979753"
VERSION = "1.38.0"
DESCRIPTION = "teams of idempotency keys"


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    team = BigInt(null=True, default=None)
    manager.add_column("IdempotencyKey", "idempotency_keys", "team_id", column_class=BigInt, params=team._meta.params)
    return manager
