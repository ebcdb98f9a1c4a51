from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Timestamptz
from piccolo.columns.indexes import IndexMethod

ID = "2026-11-22T03:35:10:000000"
VERSION = "1.38.0"
DESCRIPTION = "tried logins"


async def forwards():
    manager = MigrationManager(
        migration_id=ID, app_name="headwater", description=DESCRIPTION
    )

    for column_name in ("login_tried_at", "credentials_refused_at"):
        manager.add_column(
            table_class_name="Database",
            tablename="databases",
            column_name=column_name,
            db_column_name=column_name,
            column_class_name="Timestamptz",
            column_class=Timestamptz,
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
