"""Partitions of our own tables: made by many at once, dropped by age, without keeping readers and writers waiting."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.store.partitions import PartitionedTable, Span, drop_before, ensure
from app.store.rights import renew_rights
from app.store.session import execute, fetch, transaction
from tests.support.store import store

TABLE = PartitionedTable(tablename="readings_of_a_test", span=Span.DAY)
MONTHLY = PartitionedTable(tablename="months_of_a_test", span=Span.MONTH)
START = datetime(2026, 2, 27, 13, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest_asyncio.fixture
async def tables(own_store: None, control_admin_dsn: str) -> None:
    async with store(control_admin_dsn), transaction():
        for table in (TABLE, MONTHLY):
            name = table.tablename
            await execute(f"CREATE TABLE {name} (id bigint, at timestamptz NOT NULL) PARTITION BY RANGE (at)")
            await execute(f"CREATE UNIQUE INDEX {name}_of ON {name} (id, at)")
        await renew_rights()


@pytest_asyncio.fixture
async def other(tables: None, control_dsn: str) -> AsyncIterator[Any]:
    """A session of somebody else's."""
    connection = await asyncpg.connect(control_dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def partitions(table: PartitionedTable) -> list[str]:
    rows = await fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = $1::text::regclass ORDER BY 1",
        table.tablename,
    )
    return [row["name"].removeprefix(table.tablename) for row in rows]


async def test_many_at_once_make_each_one_once(tables: None) -> None:
    made = await asyncio.gather(*(ensure(TABLE, START, START + 3 * DAY) for _ in range(8)))
    assert sum(made) == 4
    assert await partitions(TABLE) == ["_p20260227", "_p20260228", "_p20260301", "_p20260302"]
    assert await ensure(TABLE, START, START + 3 * DAY) == 0
    await fetch(
        f"INSERT INTO {TABLE.tablename} SELECT 1, $1::timestamptz + n * interval '1 hour'"
        " FROM generate_series(0, 71) n",
        START,
    )
    assert len(await fetch(f"SELECT 1 FROM {TABLE.tablename}")) == 72


async def test_the_end_belongs_to_the_next(tables: None) -> None:
    midnight = datetime(2026, 2, 28, tzinfo=UTC)
    await ensure(TABLE, START, midnight)
    assert await partitions(TABLE) == ["_p20260227"]
    await ensure(MONTHLY, START, datetime(2027, 1, 1, tzinfo=UTC))
    assert (await partitions(MONTHLY))[0::10] == ["_p20260201", "_p20261201"]


async def test_readers_and_writers_go_on(other: Any) -> None:
    await ensure(TABLE, START, START + DAY)
    async with other.transaction():
        await other.execute(f"INSERT INTO {TABLE.tablename} VALUES (1, $1)", START)
        await other.fetch(f"SELECT * FROM {TABLE.tablename}")
        assert await ensure(TABLE, START, START + 5 * DAY) > 0


async def test_old_ones_go_when_nobody_uses_the_table(other: Any) -> None:
    await ensure(TABLE, START, START + 3 * DAY)
    async with other.transaction():
        await other.fetch(f"SELECT * FROM {TABLE.tablename}")
        assert await drop_before(TABLE, START + 2 * DAY) == 0
    assert await drop_before(TABLE, START + 2 * DAY) == 2, "that of the moment itself stays"
    assert await partitions(TABLE) == ["_p20260301", "_p20260302"]
    assert await drop_before(TABLE, START + 2 * DAY) == 0


async def test_what_is_not_a_day_old_stays(tables: None) -> None:
    now = datetime.now(UTC)
    await ensure(TABLE, now - DAY, now + DAY)
    assert await drop_before(TABLE, now + 10 * DAY) == 0
    assert len(await partitions(TABLE)) == 3


async def test_those_of_the_audit_log_stay_for_a_month_whoever_asks(own_store: None) -> None:
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for age in (32, 29):
        assert await fetch("SELECT ensure_partition('audit_events', $1, $2)", now - age * DAY, now - (age - 1) * DAY)
    events = PartitionedTable(tablename="audit_events", span=Span.MONTH)
    there = await partitions(events)
    assert await drop_before(events, now + 100 * DAY) == 1
    gone = f"_p{now - 32 * DAY:%Y%m%d}"
    assert set(there) - set(await partitions(events)) == {gone}


async def test_ranges_that_cannot_be(tables: None) -> None:
    for until in (START, START - DAY, START + 1001 * DAY):
        with pytest.raises(ValueError, match=r"empty|1000"):
            await ensure(TABLE, START, until)
    async with transaction():
        with pytest.raises(AssertionError):
            await ensure(TABLE, START, START + DAY)
    assert await partitions(TABLE) == []


async def test_other_tables_are_left_alone(tables: None) -> None:
    for name in ("databases", "nothing", "pg_class"):
        with pytest.raises(asyncpg.RaiseError, match="no partitioned table of ours"):
            await ensure(PartitionedTable(tablename=name, span=Span.DAY), START, START + DAY)
        assert await drop_before(PartitionedTable(tablename=name, span=Span.DAY), START + 9 * DAY) == 0


@pytest_asyncio.fixture
async def owner(tables: None, control_admin_dsn: str) -> AsyncIterator[Any]:
    """A session of the owner of the tables."""
    connection = await asyncpg.connect(control_admin_dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def test_a_role_without_rights_on_tables_makes_them_and_reaches_no_partition(owner: Any) -> None:
    """Whatever is granted by default on new tables: a row that may not be changed can't be changed in its partition."""
    role = f"lesser_{TABLE.tablename}"
    await owner.execute(f"""
        DROP ROLE IF EXISTS {role}; CREATE ROLE {role};
        GRANT EXECUTE ON FUNCTION ensure_partition, drop_oldest_partition TO {role};
        GRANT INSERT, SELECT ON {TABLE.tablename} TO {role};
        ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO {role};
        SET ROLE {role};
    """)
    try:
        made = await owner.fetchval("SELECT ensure_partition($1, $2, $3)", TABLE.tablename, _day(0), _day(1))
        assert made is True
        await owner.execute(f"INSERT INTO {TABLE.tablename} VALUES (1, $1)", _day(0))
        for refused in (
            f"UPDATE {TABLE.tablename}_p20260301 SET id = 2",
            f"DELETE FROM {TABLE.tablename}_p20260301",
            f"DROP TABLE {TABLE.tablename}_p20260301",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await owner.execute(refused)
        assert await owner.fetchval("SELECT drop_oldest_partition($1, $2)", TABLE.tablename, _day(1)) is not None
    finally:
        await owner.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


def _day(number: int) -> datetime:
    return datetime(2026, 3, 1 + number, tzinfo=UTC)
