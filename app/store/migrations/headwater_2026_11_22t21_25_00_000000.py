"""Sessions of people, their requests of the minute, and links to sign in with."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, BigSerial, Bytea, Column, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T21:25:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "sessions of people"


class User(Table, tablename="users", db=DB):
    id = BigSerial(primary_key=True)


def _now() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


_SESSION: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "uuid": UUID(unique=True),
    "user_id": ForeignKey(User, null=False, on_delete=OnDelete.cascade),
    "hash": Bytea(unique=True),
    "method": Text(),
    "address": Text(),
    "user_agent": Text(default=""),
    "idle_seconds": Integer(),
    "last_used_at": _now(),
    "expires_at": Timestamptz(),
    "created_at": _now(),
}
_USAGE: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "user_id": ForeignKey(User, null=False, unique=True, on_delete=OnDelete.cascade),
    "window_start": _now(),
    "window_count": Integer(default=0),
}
_LINK: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "user_id": ForeignKey(User, null=False, on_delete=OnDelete.cascade),
    "token_hash": Bytea(unique=True),
    "expires_at": Timestamptz(),
    "created_at": _now(),
}
_AFTERWARDS = (
    "CREATE INDEX sessions_of_user ON sessions (user_id, id)",
    "CREATE INDEX sign_in_links_of_user ON sign_in_links (user_id, id)",
    # Every request of a person writes their row anew, in its place where there is room.
    "ALTER TABLE session_usage SET (fillfactor = 50)",
)


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes tables and columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _AFTERWARDS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table_class, table, columns in (
        ("Session", "sessions", _SESSION),
        ("SessionUsage", "session_usage", _USAGE),
        ("SignInLink", "sign_in_links", _LINK),
    ):
        manager.add_table(class_name=table_class, tablename=table)
        for name, column in columns.items():
            manager.add_column(table_class, table, name, column_class=type(column), params=column._meta.params)
    return manager
