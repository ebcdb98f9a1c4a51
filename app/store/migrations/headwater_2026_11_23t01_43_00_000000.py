"""The open connections of engine hosts, and who gets fewer of them while they are short."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import BigSerial, Column, ForeignKey, Integer, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-23T01:43:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "open connections of hosts"


class EngineHost(Table, tablename="engine_hosts", db=DB):
    id = BigSerial(primary_key=True)


class Database(Table, tablename="databases", db=DB):
    id = BigSerial(primary_key=True)


_HOST_CONNECTIONS: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "host_id": ForeignKey(EngineHost, null=False, unique=True, on_delete=OnDelete.cascade),
    "open": Integer(default=0),
    "admitted": Integer(default=0),
    "short_since": Timestamptz(null=True, default=None),
    "calm_since": Timestamptz(null=True, default=None),
    "looked_at": Timestamptz(default=TimestamptzNow()),
}
_CONNECTION_HOLD: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "database_id": ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade),
    "at_most": Integer(),
    "applied_at": Timestamptz(null=True, default=None),
    "created_at": Timestamptz(default=TimestamptzNow()),
}


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for class_name, tablename, columns in (
        ("HostConnections", "host_connections", _HOST_CONNECTIONS),
        ("ConnectionHold", "connection_holds", _CONNECTION_HOLD),
    ):
        manager.add_table(class_name=class_name, tablename=tablename)
        for name, column in columns.items():
            manager.add_column(class_name, tablename, name, column_class=type(column), params=column._meta.params)
    return manager
