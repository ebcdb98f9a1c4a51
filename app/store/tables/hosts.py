"""Engine hosts."""

from piccolo.columns import Array, BigSerial, Boolean, Bytea, Integer, Text
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns


class EngineHost(Table, tablename="engine_hosts", db=DB):
    """A server that holds tenant databases.

    `host` and `port` are the public address, which tenants get. `admin_sealed` is the service's own access; `tls` and
    `tls_ca` are its requirements for the server's certificate. `connection_capacity` are the sessions that tenants may
    have open on it together, each of which may be allocated `connection_overcommit` times. `storage_gb` is
    what its databases may take together, null where nobody said. `extensions` are those that tenants may create, as of
    the last inspection. `sick_until` excludes a host that failed from placement for a while.
    A row with `removed_at` is a server that is no longer used: only destroyed databases refer to it, and its
    credentials are deleted.
    """

    id = BigSerial(primary_key=True)
    engine = Text()
    flavour = Text()
    version = Text()
    region = Text()
    host = Text()
    port = Integer()
    admin_sealed = Bytea(null=True, default=None)
    tls = Text(default="prefer")
    tls_ca = Text(null=True, default=None)
    capacity = Integer()
    connection_capacity = Integer()
    connection_overcommit = Integer(default=1)
    storage_gb = Integer(null=True, default=None)
    extensions = Array(base_column=Text(), default=list)
    draining = Boolean(default=False)
    sick_until = columns.moment()
    sick_reason = Text(null=True, default=None)
    removed_at = columns.moment()
    created_at = columns.created_at()
    one_address = Unique([engine, host, port])
