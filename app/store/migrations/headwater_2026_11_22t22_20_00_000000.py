"""Who people are at an OpenID Connect provider."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import BigSerial, Column, ForeignKey, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T22:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "people at a provider"


class User(Table, tablename="users", db=DB):
    id = BigSerial(primary_key=True)


_SUBJECT: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "user_id": ForeignKey(User, null=False, on_delete=OnDelete.cascade),
    "issuer": Text(),
    "subject": Text(),
    "created_at": Timestamptz(default=TimestamptzNow()),
}


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    manager.add_table(class_name="OidcSubject", tablename="oidc_subjects")
    for name, column in _SUBJECT.items():
        manager.add_column("OidcSubject", "oidc_subjects", name, column_class=type(column), params=column._meta.params)
    for name, columns in (("one_person_each", ["issuer", "subject"]), ("one_for_each_person", ["issuer", "user_id"])):
        manager.add_constraint(
            table_class_name="OidcSubject",
            tablename="oidc_subjects",
            constraint_name=name,
            constraint_class=Unique,
            params={"columns": columns, "nulls_distinct": True},
        )
    return manager
