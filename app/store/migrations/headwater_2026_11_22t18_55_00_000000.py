"""Metrics of databases: the newest reading, samples, their sums in steps of five minutes and of an hour, and gaps."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Array, BigInt, BigSerial, Boolean, Column, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T18:55:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "metrics of databases"


class Database(Table, tablename="databases", db=DB):
    id = BigSerial(primary_key=True)


_COUNTERS = ("transactions", "rows_read", "rows_written", "cache_hits", "cache_reads")
_READING: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "database_id": ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade),
    "first_at": Timestamptz(),
    "read_at": Timestamptz(),
    "broken": Boolean(default=False),
    "place": Text(),
    "began": Text(),
    "witness": Array(base_column=BigInt(), default=list),
    "storage_bytes": BigInt(null=True, default=None),
    "connections": Integer(default=0),
    **{name: BigInt(null=True, default=None) for name in _COUNTERS},
    **{f"total_{name}": BigInt(null=True, default=None) for name in _COUNTERS},
}
_ROLLUP: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "seconds": Integer(unique=True),
    "rolled_until": Timestamptz(),
}
_AFTERWARDS = (
    # Every minute each row is written anew, in its place where there is room.
    "ALTER TABLE metric_readings SET (fillfactor = 50)",
    *(
        statement.format(table=table)
        for table in ("metric_samples", "metric_five_minutes", "metric_hours")
        for statement in (
            "CREATE TABLE {table} (database_id bigint NOT NULL, at timestamptz NOT NULL, storage_bytes bigint,"
            " connections integer, transactions bigint, rows_read bigint, rows_written bigint, cache_hits bigint,"
            " cache_reads bigint) PARTITION BY RANGE (at)",
            "CREATE UNIQUE INDEX {table}_of_databases ON {table} (database_id, at)",
            # What comes in the order of time is found by time in an index of a few pages.
            "CREATE INDEX {table}_by_time ON {table} USING brin (at)",
        )
    ),
    "CREATE TABLE metric_gaps (database_id bigint NOT NULL, since timestamptz NOT NULL, until timestamptz NOT NULL)"
    " PARTITION BY RANGE (until)",
    "CREATE UNIQUE INDEX metric_gaps_of_databases ON metric_gaps (database_id, until)",
)


class _WithPartitionedTables(MigrationManager):
    """Piccolo makes no partitioned tables, and runs a manager's own SQL before it makes the others."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _AFTERWARDS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithPartitionedTables(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table_class, table, columns in (
        ("MetricReading", "metric_readings", _READING),
        ("MetricRollup", "metric_rollups", _ROLLUP),
    ):
        manager.add_table(class_name=table_class, tablename=table)
        for name, column in columns.items():
            manager.add_column(table_class, table, name, column_class=type(column), params=column._meta.params)
    return manager
