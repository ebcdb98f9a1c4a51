"""What databases use, as it was last measured."""

from piccolo.columns import BigInt, BigSerial, Boolean, Date, DoublePrecision, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.databases import Database


class DatabaseUsage(Table, tablename="database_usage", db=DB):
    """Apart from `databases`, because every measurement writes it.

    `runtime_seconds` are those of `runtime_month`, the first day of a month in UTC; in `runtime_excused` an operator
    lets the database run beyond its hours. `warned_at` is set from a warning until the storage is below its threshold.
    `frozen_bytes` is the least that was measured since it was frozen, `growing` the number of measurements in a row
    that found more, and `judged_at` the measurement that these were last brought up to date by.
    `storage_bytes` is of `storage_measured_at`, null until the first time. Since `unmeasured_since` measuring it has
    failed, `measure_failures` times in a row, lastly for `measure_failure`; where `measured_alone_at` is set it is
    measured apart from the others, not before then. `reclaimed_at` is when its deleted rows' space was last given back,
    or that was tried.
    Until `own_login_until` the service itself may have been logged in with the tenant's credentials.
    """

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    measured_at = Timestamptz()
    storage_bytes = BigInt()
    storage_measured_at = columns.moment()
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
