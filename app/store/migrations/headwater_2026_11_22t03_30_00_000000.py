"""Deletions that can be undone, and promised signals."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Integer, Text

ID = "2026-11-22T03:30:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "undeletion"

async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    manager.add_column(
        table_class_name="Database",
        tablename="databases",
        column_name="deletion_revision",
        db_column_name="deletion_revision",
        column_class_name="Integer",
        column_class=Integer,
        params={"default": 0, "null": False},
        schema=None,
    )
    manager.add_column(
        table_class_name="WorkflowStart",
        tablename="workflow_starts",
        column_name="signal",
        db_column_name="signal",
        column_class_name="Text",
        column_class=Text,
        params={"default": None, "null": True},
        schema=None,
    )
    manager.alter_column(
        table_class_name="WorkflowStart",
        tablename="workflow_starts",
        column_name="workflow_id",
        db_column_name="workflow_id",
        params={"unique": False},
        old_params={"unique": True},
        column_class=Text,
        old_column_class=Text,
        schema=None,
    )

    return manager
