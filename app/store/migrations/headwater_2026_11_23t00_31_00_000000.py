"""Users of databases get new passwords."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, Boolean, Bytea, Column, Timestamptz

ID = "2026-11-23T00:31:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "rotations of users"

_COLUMNS: dict[str, Column] = {
    "rotation": UUID(null=True, default=None),
    "rotated_at": Timestamptz(null=True, default=None),
    "next_sealed": Bytea(null=True, default=None),
    "next_rotation": UUID(null=True, default=None),
    "next_ends_sessions": Boolean(default=False),
}


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for name, column in _COLUMNS.items():
        manager.add_column(
            "DatabaseUser", "database_users", name, column_class=type(column), params=column._meta.params
        )
    return manager
