from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Text
from piccolo.columns.indexes import IndexMethod

ID = "2026-11-23T01:27:44:113238"
VERSION = "1.38.0"
DESCRIPTION = "traces of events and pending starts"


async def forwards():
    manager = MigrationManager(
        migration_id=ID, app_name="headwater", description=DESCRIPTION
    )

    manager.add_column(
        table_class_name="Event",
        tablename="events",
        column_name="traceparent",
        db_column_name="traceparent",
        column_class_name="Text",
        column_class=Text,
        params={
            "default": None,
            "null": True,
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

    manager.add_column(
        table_class_name="WorkflowStart",
        tablename="workflow_starts",
        column_name="traceparent",
        db_column_name="traceparent",
        column_class_name="Text",
        column_class=Text,
        params={
            "default": None,
            "null": True,
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
