"""What is known of databases by their metrics. The samples themselves are in partitioned tables."""

from piccolo.columns import Array, BigInt, BigSerial, Boolean, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables.databases import Database


class MetricReading(Table, tablename="metric_readings", db=DB):
    """The newest sample of a database, which the next one is compared with.

    The first was taken at `first_at`, this one at `read_at`. `place` is where the database was, `began` and `witness`
    what its server said of the beginning of its counters; `transactions` to `cache_reads` are those counters, null for
    what isn't counted. `total_…` are the sums of all differences so far, which no restart or move makes less. The
    sample after a `broken` one is not compared with it: the database was paused in between, or otherwise nobody's.
    """

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    first_at = Timestamptz()
    read_at = Timestamptz()
    broken = Boolean(default=False)
    place = Text()
    began = Text()
    witness = Array(base_column=BigInt(), default=list)
    storage_bytes = BigInt(null=True, default=None)
    connections = Integer(default=0)
    transactions = BigInt(null=True, default=None)
    rows_read = BigInt(null=True, default=None)
    rows_written = BigInt(null=True, default=None)
    cache_hits = BigInt(null=True, default=None)
    cache_reads = BigInt(null=True, default=None)
    total_transactions = BigInt(null=True, default=None)
    total_rows_read = BigInt(null=True, default=None)
    total_rows_written = BigInt(null=True, default=None)
    total_cache_hits = BigInt(null=True, default=None)
    total_cache_reads = BigInt(null=True, default=None)


class MetricRollup(Table, tablename="metric_rollups", db=DB):
    """Until when samples are summed up in steps of so many `seconds`. No sample from before that is taken any more."""

    id = BigSerial(primary_key=True)
    seconds = Integer(unique=True)
    rolled_until = Timestamptz()
