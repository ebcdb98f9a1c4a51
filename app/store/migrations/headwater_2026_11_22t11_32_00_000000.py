"""Protection against deletion, and databases that delete themselves."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Boolean, Column, Timestamptz

from app.store.engine import DB

ID = "2026-11-22T11:32:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "protection and expiry of databases"

_COLUMNS: dict[str, Column] = {
    "deletion_protection": Boolean(default=False),
    "expires_at": Timestamptz(null=True, default=None),
    "expiry_announced_at": Timestamptz(null=True, default=None),
}
_INDEXES = (
    "CREATE INDEX databases_expiring ON databases (expires_at) WHERE expires_at IS NOT NULL AND status <> 'deleted'",
    "CREATE INDEX databases_expiring_unannounced ON databases (expires_at)"
    " WHERE expires_at IS NOT NULL AND expiry_announced_at IS NULL AND status <> 'deleted'",
)
"""What is due is looked for every second: neither index has a row that need not be looked at for long."""


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it adds columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _INDEXES:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for name, column in _COLUMNS.items():
        manager.add_column(
            "Database", "databases", name, column_class=type(column), params=column._meta.params
        )
    return manager
