"""What databases use, as last measured."""

from piccolo.columns import BigInt, BigSerial, Boolean, Date, DoublePrecision, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.databases import Database


class DatabaseUsage(Table, tablename="database_usage", db=DB):
    """A table of its own, because every measurement writes it.

    `runtime_seconds` count for `runtime_month`, the first day of a month in UTC; in the month `runtime_excused` an
    operator lets the database exceed its hours. `warned_at` is set from a warning until the storage is below its
    threshold. `frozen_bytes` is the least measured since it was frozen, `growing` the number of consecutive
    measurements that found more, `judged_at` the measurement that last updated these two. `storage_bytes` was measured
    at `storage_measured_at`, null before the first time; `rebuilding` says that a table was being rebuilt then, and
    that its old and its new file count, `was_rebuilding` the same of the measurement before. Since `unmeasured_since`
    its measurement has failed, `measure_failures` times in a row, the last time for the reason `measure_failure`; if
    `measured_alone_at` is set, it is measured separately from the others, not before that time. `reclaimed_at` is when
    reclaiming the space of deleted rows was last tried, or a later time before which it isn't tried again. Until
    `own_login_until` the service itself may be logged in with the tenant's credentials.
    """

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    measured_at = Timestamptz()
    storage_bytes = BigInt()
    storage_measured_at = columns.moment()
    rebuilding = Boolean(default=False)
    was_rebuilding = Boolean(default=False)
    measured_alone_at = columns.moment()
    unmeasured_since = columns.moment()
    measure_failures = Integer(default=0)
    measure_failure = Text(null=True, default=None)
    reclaimed_at = columns.moment()
    connected = Boolean()
    runtime_month = Date()
    runtime_seconds = DoublePrecision(default=0.0)
    runtime_excused = Date(null=True, default=None)
    warned_at = columns.moment()
    frozen_bytes = BigInt(null=True, default=None)
    growing = Integer(default=0)
    judged_at = columns.moment()
    own_login_until = columns.moment()
