"""Databases that get their data from a backup, or from another database."""

from piccolo.columns import UUID, BigInt, BigSerial, Boolean, DoublePrecision, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.databases import Database


class Restoration(Table, tablename="restorations", db=DB):
    """One database that gets its data from somewhere, from the request to its end.

    `kind` says what is being done. `backup_uuid` is the backup that it comes from, or `source_id` the database.
    `loaded_host_id` and `loaded_name` say where the data is whole and compared: nowhere else is it let in. In place,
    `scratch_id` is the database in which the backup is proven first, `before_uuid` the backup of what there was;
    `exchanging_at` is set before anything of that is touched, and from then on nothing cancels it. `from_host_id` is
    the lost host of a database that was moved. `held_seconds` is how long the source of a clone was closed. At most one
    of a database is open: it has no `ended_at`. The `outcome` of an ended one is `completed`, `failed` or `cancelled`.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    kind = Text()
    backup_uuid = UUID(null=True, default=None)
    source_id = BigInt(null=True, default=None)
    pause_source = Boolean(default=False)
    loaded_host_id = BigInt(null=True, default=None)
    loaded_name = Text(null=True, default=None)
    loaded_at = columns.moment()
    scratch_id = BigInt(null=True, default=None)
    before_uuid = UUID(null=True, default=None)
    exchanging_at = columns.moment()
    from_host_id = BigInt(null=True, default=None)
    from_released_at = columns.moment()
    held_seconds = DoublePrecision(null=True, default=None)
    tables = Integer(null=True, default=None)
    rows = BigInt(null=True, default=None)
    outcome = Text(null=True, default=None)
    created_at = columns.created_at()
    ended_at = columns.moment()
