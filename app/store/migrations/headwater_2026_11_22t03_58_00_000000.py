"""Storage is measured in parts, the longest unmeasured first, and what can't be measured is remembered."""

from typing import Any

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Integer, Text, Timestamptz
from piccolo.columns.indexes import IndexMethod

ID = "2026-11-22T03:58:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "measured in parts"

_COLUMNS: tuple[tuple[str, type[Any], Any, bool], ...] = (
    ("storage_measured_at", Timestamptz, None, True),
    ("measured_alone_at", Timestamptz, None, True),
    ("unmeasured_since", Timestamptz, None, True),
    ("measure_failures", Integer, 0, False),
    ("measure_failure", Text, None, True),
    ("reclaimed_at", Timestamptz, None, True),
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for name, kind, default, null in _COLUMNS:
        manager.add_column(
            table_class_name="DatabaseUsage",
            tablename="database_usage",
            column_name=name,
            db_column_name=name,
            column_class_name=kind.__name__,
            column_class=kind,
            params={
                "default": default,
                "null": null,
                "primary_key": False,
                "unique": False,
                "index": False,
                "index_method": IndexMethod.btree,
                "choices": None,
                "db_column_name": None,
                "secret": False,
            },
            schema=None,
        )
    return manager
