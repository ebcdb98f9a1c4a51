"""The hours that databases run, counted from samples at moments that the tests choose."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.quotas import usage
from app.quotas.usage import Sample
from app.store.session import fetch
from tests.support.in_process import LoneApi
from tests.support.moves import make_active

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
GAP = 120.0


async def _database(lone: LoneApi) -> int:
    made = (await (await lone.caller()).create()).json()["data"]
    await make_active(made["uuid"])
    rows = await fetch("SELECT id FROM databases WHERE uuid = $1", UUID(made["uuid"]))
    return int(rows[0]["id"])


async def _sample(database: int, at: datetime, connected: bool) -> float:
    """The month's seconds after it."""
    await usage.record_use([Sample(database_id=database, use=float(connected))], at, longest_gap=GAP)
    rows = await fetch("SELECT runtime_seconds FROM database_usage WHERE database_id = $1", database)
    return float(rows[0]["runtime_seconds"])


def _after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


async def test_time_in_use_adds_up(lone: LoneApi) -> None:
    database = await _database(lone)
    counted = [
        await _sample(database, _after(60 * minute), connected)
        for minute, connected in enumerate([True, True, False, True, False, False])
    ]
    assert counted == [0, 60, 60, 120, 120, 120], "the first sample has nothing before it"


async def test_repeated_late_and_overlapping_samples_count_no_time_twice(lone: LoneApi) -> None:
    database = await _database(lone)
    await _sample(database, START, True)
    assert await _sample(database, _after(60), True) == 60
    assert await _sample(database, _after(60), True) == 60, "the attempt was made again"
    assert await _sample(database, _after(30), True) == 60, "another run began earlier"
    assert await _sample(database, _after(90), True) == 90, "another run began in between"


async def test_a_long_absence_of_samples_counts_for_nobody(lone: LoneApi) -> None:
    database = await _database(lone)
    await _sample(database, START, True)
    assert await _sample(database, _after(110), True) == 110, "one run was missed"
    assert await _sample(database, _after(110 + 3600), True) == 110 + GAP


async def test_the_month_turns_in_utc(lone: LoneApi) -> None:
    database = await _database(lone)
    end = datetime(2026, 11, 30, 23, 59, 30, tzinfo=UTC)
    await _sample(database, end - timedelta(seconds=60), True)
    assert await _sample(database, end, True) == 60
    assert await _sample(database, end + timedelta(seconds=60), True) == 30, "what lies in November was November's"
    rows = await fetch("SELECT runtime_month FROM database_usage WHERE database_id = $1", database)
    assert rows[0]["runtime_month"] == date(2026, 12, 1)


async def test_a_month_turns_while_nobody_is_connected(lone: LoneApi) -> None:
    database = await _database(lone)
    await _sample(database, START, True)
    await _sample(database, _after(60), True)
    assert await _sample(database, datetime(2027, 1, 1, tzinfo=UTC), False) == 0


async def test_a_deleted_one_is_not_measured(lone: LoneApi) -> None:
    database = await _database(lone)
    await fetch("UPDATE databases SET status = 'deleted' WHERE id = $1", database)
    await usage.record_use([Sample(database_id=database, use=1.0)], START, longest_gap=GAP)
    assert await fetch("SELECT 1 FROM database_usage WHERE database_id = $1", database) == []


SAMPLES = st.lists(st.tuples(st.integers(0, 4000), st.booleans()), min_size=2, max_size=12)


@pytest.fixture
async def metered(lone: LoneApi) -> int:
    return await _database(lone)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(samples=SAMPLES)
async def test_never_more_than_the_time_that_passed(metered: int, samples: Sequence[tuple[int, bool]]) -> None:
    await fetch("DELETE FROM database_usage WHERE database_id = $1", metered)
    counted = 0.0
    for seconds, connected in samples:
        before, counted = counted, await _sample(metered, _after(seconds), connected)
        assert counted >= before
    moments = [seconds for seconds, _ in samples]
    assert counted <= max(moments) - moments[0] if max(moments) > moments[0] else counted == 0
    assert counted <= GAP * (len(samples) - 1)
