"""The open connections of engine hosts, and who gets fewer of them while they are short."""

from piccolo.columns import BigSerial, ForeignKey, Integer
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.databases import Database
from app.store.tables.hosts import EngineHost


class HostConnections(Table, tablename="host_connections", db=DB):
    """A table of its own, because it is written every few seconds, and placement locks the host's row.

    `open` are the sessions that were open when the host was looked at last, at `looked_at`, and `admitted` those that
    its tenants may have open together. Since `short_since` it is short of them; since `calm_since` it needs fewer
    again, and soon is no longer.
    """

    id = BigSerial(primary_key=True)
    host_id = ForeignKey(EngineHost, null=False, unique=True, on_delete=OnDelete.cascade)
    open = Integer(default=0)
    admitted = Integer(default=0)
    short_since = columns.moment()
    calm_since = columns.moment()
    looked_at = columns.created_at()


class ConnectionHold(Table, tablename="connection_holds", db=DB):
    """A database that gets at most so many connections while its host is short of them. The row is there before the
    engine is changed, and until the engine has the database's own limit again. The engine has had `at_most` since
    `applied_at`, as far as is known."""

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    at_most = Integer()
    applied_at = columns.moment()
    created_at = columns.created_at()
