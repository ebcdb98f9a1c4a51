"""Samples and their sums in our own database: each once, whoever writes them, and gone by age."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engines.base import Counters
from app.store.engine import DB
from app.store.session import fetch
from app.usage.metrics import recording, rollups, sampling, series
from app.usage.metrics.differences import Look
from app.usage.metrics.recording import Taken
from app.usage.metrics.rollups import FIVE_MINUTES, HOURS, SAMPLES
from app.usage.metrics.series import Series
from tests.support.copies import Copies
from tests.support.in_process import lone_api
from tests.support.waiting import until

START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LONGEST = 3 * MINUTE


@pytest.fixture(scope="module")
async def databases(copies: Copies) -> AsyncIterator[list[int]]:
    """Three rows without servers, in a database of their own."""
    async with copies.lent() as dsn, lone_api(dsn) as api:
        await api.add_host()
        caller = await api.caller()
        for number in range(3):
            await caller.create(f"db-{number}")
        rows = await fetch("SELECT id FROM databases ORDER BY id")
        yield [row["id"] for row in rows]


@pytest.fixture
async def others(databases: list[int]) -> AsyncIterator[Any]:
    """A session of somebody else's."""
    connection = await asyncpg.connect(DB.config["dsn"])
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(autouse=True)
async def nothing_yet(databases: list[int]) -> None:
    for table in ("readings", "rollups", "samples", "five_minutes", "hours", "gaps"):
        await fetch(f"DELETE FROM metric_{table}")
    await rollups.prepare(START)


def taken(database: int, count: int | None, **more: Any) -> Taken:
    counters = Counters(**({"began": "a", "transactions": count, "rows_read": count} | more.pop("counters", {})))
    known = {"connections": 1, "storage_bytes": 100} | more
    return Taken(database_id=database, look=Look(place="1 t", counters=counters), **known)


async def record(at: datetime, *those: Taken, stopped: Sequence[int] = ()) -> int:
    return await recording.record(those, at, longest=LONGEST, stopped=stopped)


async def read(database: int, seconds: int = 60) -> Series:
    (row,) = await fetch("SELECT uuid, team_id FROM databases WHERE id = $1", database)
    resolution = next(one for one in (HOURS, FIVE_MINUTES, SAMPLES) if one.seconds <= seconds)
    since, until = START - timedelta(days=1), START + timedelta(days=2)
    found = await series.read(row["uuid"], [row["team_id"]], resolution, seconds, since, until)
    assert found is not None
    return found


async def points(database: int, seconds: int = 60) -> list[tuple[int, int | None]]:
    """Transactions by the step's first minute."""
    found = await read(database, seconds)
    return [((at - START) // MINUTE, value) for at, value in zip(found.at, found.transactions, strict=True)]


async def gaps(database: int) -> list[tuple[int, int]]:
    found = await read(database)
    bounds = zip(found.gaps_since, found.gaps_until, strict=True)
    return [((since - START) // MINUTE, (until - START) // MINUTE) for since, until in bounds]


async def test_sixteen_at_once_write_one_sample(databases: list[int]) -> None:
    await record(START, *(taken(one, 10) for one in databases))
    written = await asyncio.gather(*(record(START + MINUTE, *(taken(one, 17) for one in databases)) for _ in range(16)))
    assert sum(written) == len(databases)
    for one in databases:
        assert await points(one) == [(0, None), (1, 7)]
    (row,) = await fetch("SELECT * FROM metric_readings WHERE database_id = $1", databases[0])
    assert (row["transactions"], row["total_transactions"], row["first_at"]) == (17, 7, START)


async def test_an_older_sample_changes_nothing(databases: list[int]) -> None:
    await record(START + 2 * MINUTE, taken(databases[0], 10))
    assert await record(START + MINUTE, taken(databases[0], 5)) == 0
    assert await points(databases[0]) == [(2, None)]


async def test_silence_is_a_gap_and_its_sum_is_known_all_the_same(databases: list[int]) -> None:
    one = databases[0]
    await record(START, taken(one, 0))
    await record(START + MINUTE, taken(one, 5))
    await record(START + 3 * MINUTE, taken(one, 6))
    await record(START + 9 * MINUTE, taken(one, 100))
    await record(START + 10 * MINUTE, taken(one, 101))
    assert await points(one) == [(0, None), (1, 5), (3, 1), (9, None), (10, 1)], "one missed sample is no gap"
    assert await gaps(one) == [(3, 9)]
    (row,) = await fetch("SELECT total_transactions FROM metric_readings WHERE database_id = $1", one)
    assert row["total_transactions"] == 101


async def test_gaps_that_follow_each_other_are_one(databases: list[int]) -> None:
    one = databases[0]
    for minute in range(4):
        await record(START + minute * MINUTE, taken(one, 7, counters={"began": str(minute)}))
    await record(START + 4 * MINUTE, taken(one, 8, counters={"began": "3"}))
    assert await gaps(one) == [(0, 3)]
    assert await points(one) == [(0, None), (1, None), (2, None), (3, None), (4, 1)]


async def test_what_one_server_says_of_one_database_is_no_others_business(databases: list[int]) -> None:
    """Counters of all sizes, one after the other: nothing overflows, neither the others' rows nor the sums."""
    wild, calm = databases[:2]
    for minute, count in enumerate((0, 2**46, 2**47, 2**62 - 1, 0, None, 5)):
        await record(START + minute * MINUTE, taken(wild, count), taken(calm, minute))
    await rollups.roll_up(START + timedelta(hours=3))
    assert await points(calm, 3600) == [(0, 6)]
    assert await points(wild, 3600) == [(0, 2**47)]


async def test_a_stopped_database_is_compared_with_nothing(databases: list[int]) -> None:
    one, other = databases[:2]
    await record(START, taken(one, 1), taken(other, 1))
    await record(START + MINUTE, taken(other, 2), stopped=[one])
    await record(START + 2 * MINUTE, taken(one, 3), taken(other, 3))
    assert (await gaps(one), await gaps(other)) == ([(0, 2)], [])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_sums_are_of_all_samples_whenever_they_are_made(databases: list[int], data: st.DataObject) -> None:
    """Rolled up at any moments, or not yet: every step tells the same of the same samples, and none is lost."""
    for table in ("readings", "rollups", "samples", "five_minutes", "hours", "gaps"):
        await fetch(f"DELETE FROM metric_{table}")
    await rollups.prepare(START)
    one, count, minute, expected = databases[0], 0, 0, dict[int, int]()
    await record(START, taken(one, 0))
    for more, wait, roll in data.draw(
        st.lists(st.tuples(st.integers(0, 50), st.integers(1, 3), st.booleans()), min_size=1, max_size=40)
    ):
        count, minute = count + more, minute + wait
        await record(START + minute * MINUTE, taken(one, count))
        expected[minute] = more
        if roll:
            await asyncio.gather(*(rollups.roll_up(START + minute * MINUTE) for _ in range(2)))
    for seconds in (300, 900, 3600):
        summed: dict[int, int] = {}
        for at, value in expected.items():
            step = at * 60 // seconds * seconds // 60
            summed[step] = summed.get(step, 0) + value
        found = {at: value for at, value in await points(one, seconds) if value is not None}
        assert found == summed
    assert dict(await points(one)) == {0: None} | expected


async def test_what_is_summed_up_takes_no_more(databases: list[int]) -> None:
    one = databases[0]
    await record(START, taken(one, 0))
    await record(START + MINUTE, taken(one, 1))
    await rollups.roll_up(START + 9 * MINUTE)
    assert await record(START + 4 * MINUTE, taken(one, 5)) == 0, "it comes too late"
    await record(START + 5 * MINUTE, taken(one, 6))
    assert await points(one, 300) == [(0, 1), (5, None)]


async def test_a_death_before_the_commit_leaves_all_for_the_next(databases: list[int], others: Any) -> None:
    """The connection is ended when the sample is written and the reading isn't yet."""
    one = databases[0]
    await record(START, taken(one, 0))
    async with others.transaction():
        await others.execute("LOCK TABLE databases")
        dying = asyncio.create_task(record(START + MINUTE, taken(one, 3)))
        waiting = "SELECT pid FROM pg_locks WHERE relation = 'databases'::regclass AND NOT granted"
        (row,) = await until(lambda: others.fetch(waiting))
        await others.execute("SELECT pg_terminate_backend($1)", row["pid"])
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
            await dying
    assert await points(one) == [(0, None)]
    await record(START + MINUTE, taken(one, 3))
    assert await points(one) == [(0, None), (1, 3)]


async def test_rows_go_by_age(databases: list[int]) -> None:
    now = datetime.now(UTC)
    for days in (0, 3, 9, 100):
        await fetch("DELETE FROM metric_rollups")
        await fetch("DELETE FROM metric_readings")
        await rollups.prepare(now - timedelta(days=days))
        await record(now - timedelta(days=days), taken(databases[0], 1))
        for table in ("five_minutes", "hours"):
            await fetch(f"INSERT INTO metric_{table} (database_id, at) VALUES (1, $1)", now - timedelta(days=days))
        await fetch("INSERT INTO metric_gaps VALUES (1, $1, $1)", now - timedelta(days=days))
    assert await sampling.drop_old_metrics(500, timedelta(0)) > 0
    left = {
        table: [(now - row["at"]).days for row in await fetch(f"SELECT {at} AS at FROM metric_{table} ORDER BY 1 DESC")]
        for table, at in {"samples": "at", "five_minutes": "at", "hours": "at", "gaps": "until"}.items()
    }
    assert left == {"samples": [0], "five_minutes": [0, 3], "hours": [0, 3, 9], "gaps": [0, 3, 9]}
    assert await sampling.drop_old_metrics(500, timedelta(0)) == 0


async def test_what_goes_by_age_is_not_made_again(databases: list[int]) -> None:
    await sampling.drop_old_metrics(500, timedelta(0))
    await rollups.prepare(datetime.now(UTC))
    assert await sampling.drop_old_metrics(500, timedelta(0)) == 0
