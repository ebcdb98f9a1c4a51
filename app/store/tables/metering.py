"""What databases use, metered by the second.

Triggers on `databases`, `database_usage` and `backups` write these tables, by the functions of the migration that made
them. The ledger itself, `usage_periods`, has a partition for each month, which a class here can't declare:

    database_uuid, team_id, plan, region, starts_at, ends_at, since,
    runtime_seconds, storage_byte_seconds, backup_byte_seconds
"""

from decimal import Decimal

from piccolo.columns import UUID, BigInt, BigSerial, Boolean, Integer, Numeric, Text, Timestamptz
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.partitions import PartitionedTable, Span

LEDGER = PartitionedTable(tablename="usage_periods", span=Span.MONTH)
"""The rows of `usage_parts` whose periods are closed, without their ids. They are never changed."""


class UsageClock(Table, tablename="usage_clock", db=DB):
    """One row: the length of a period, and the moment through which all periods are closed."""

    id = BigSerial(primary_key=True)
    period_seconds = Integer(default=3600)
    closed_through = Timestamptz()


class UsageMeter(Table, tablename="usage_meters", db=DB):
    """The meter of one database, from when it was first active until nothing is left of it and its backups. That of a
    database in the warm pool has no team.

    Up to `at` all is counted; since then `running`, `storage_bytes` and `backup_bytes` hold, the size as it was last
    measured. What was counted in the open period, which began at `starts_at`, is in the sums; they count from `since`.
    A database that is not `kept` has nothing on a host any more.
    """

    id = BigSerial(primary_key=True)
    database_uuid = UUID(unique=True)
    team_id = BigInt(null=True, default=None)
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    since = Timestamptz()
    at = Timestamptz()
    running = Boolean()
    kept = Boolean(default=True)
    storage_bytes = BigInt()
    backup_bytes = BigInt()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))


class UsagePart(Table, tablename="usage_parts", db=DB):
    """What one database used in a period, or in a part of one from `since` on, that is not in the ledger yet."""

    id = BigSerial(primary_key=True)
    database_uuid = UUID()
    team_id = BigInt()
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    ends_at = Timestamptz()
    since = Timestamptz()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))
    counted_once = Unique([database_uuid, since])


class UsageDay(Table, tablename="usage_days", db=DB):
    """The ledger's sums for one day in UTC, of a database as long as its team, plan and region are the same. A trigger
    on the ledger adds what is closed to them, in the same transaction."""

    id = BigSerial(primary_key=True)
    database_uuid = UUID()
    team_id = BigInt()
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    ends_at = Timestamptz()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))
    one_a_day = Unique([database_uuid, starts_at, team_id, plan, region])
