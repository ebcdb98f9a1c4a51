from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns.column_types import Timestamptz
from piccolo.columns.indexes import IndexMethod

ID = "2026-11-20T14:18:05:683836"
VERSION = "1.38.0"
DESCRIPTION = "own logins"


async def forwards():
    manager = MigrationManager(
        migration_id=ID, app_name="headwater", description=DESCRIPTION
    )

    manager.add_column(
        table_class_name="DatabaseUsage",
        tablename="database_usage",
        column_name="own_login_until",
        db_column_name="own_login_until",
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
