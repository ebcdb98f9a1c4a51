"""The size that an operator has set for a pool beside the workers' own, and hosts that were removed."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Bytea, Integer, Timestamptz
from piccolo.columns.indexes import IndexMethod

ID = "2026-11-22T03:30:10:000000"
VERSION = "1.38.0"
DESCRIPTION = "pool settings, removed hosts"

_COLUMN = {
    "default": None,
    "null": True,
    "primary_key": False,
    "unique": False,
    "index": False,
    "index_method": IndexMethod.btree,
    "choices": None,
    "db_column_name": None,
    "secret": False,
}


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    manager.add_column(
        table_class_name="EngineHost",
        tablename="engine_hosts",
        column_name="removed_at",
        db_column_name="removed_at",
        column_class_name="Timestamptz",
        column_class=Timestamptz,
        params=_COLUMN,
        schema=None,
    )
    manager.add_column(
        table_class_name="PoolTarget",
        tablename="pool_targets",
        column_name="setting",
        db_column_name="setting",
        column_class_name="Integer",
        column_class=Integer,
        params=_COLUMN,
        schema=None,
    )
    manager.alter_column(
        table_class_name="PoolTarget",
        tablename="pool_targets",
        column_name="size",
        db_column_name="size",
        params={"null": True, "default": None},
        old_params={"null": False, "default": 0},
        column_class=Integer,
        old_column_class=Integer,
        schema=None,
    )

    manager.alter_column(
        table_class_name="EngineHost",
        tablename="engine_hosts",
        column_name="admin_sealed",
        db_column_name="admin_sealed",
        params={"null": True, "default": None},
        old_params={"null": False, "default": b""},
        column_class=Bytea,
        old_column_class=Bytea,
        schema=None,
    )
    return manager
