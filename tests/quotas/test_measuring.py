"""Storage is measured in parts: one database that takes long, or fails, costs the others nothing."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.engines.base import EngineAdapter, EngineError, Measuring, Usage
from app.quotas import measuring
from app.quotas.measuring import Bounds
from app.store.session import fetch
from app.upkeep.reconcile.records import check_records
from tests.quotas.bench import Bench, bench
from tests.quotas.tenant_session import session_of
from tests.servers import RunningServer

START = datetime(2026, 11, 3, tzinfo=UTC)
UNHURRIED = Bounds(first=60, alone=120)
"""On a crowded machine a database that nothing hinders may take seconds too."""
SERVERS = {"postgres": "postgres_server", "mysql": "mysql_server", "oracle": "oracle_mysql_server"}


class _Hindered(Measuring):
    """A host on which the measuring of some databases takes more than a number of seconds."""

    def __init__(self, real: Measuring, slow: Mapping[str, float], asked: list[tuple[str, ...]]) -> None:
        self._real = real
        self._slow = slow
        self._asked = asked

    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        self._asked.append(tuple(names))
        if sum(self._slow.get(name, 0) for name in names) > seconds:
            raise EngineError("canceling statement due to statement timeout")
        return await self._real.usage(names, seconds)


@asynccontextmanager
async def _measuring(adapter: EngineAdapter, names: Sequence[str], slow: Mapping[str, float], asked: Any) -> Any:
    async with adapter.measuring(names) as real:
        yield _Hindered(real, slow, asked)


class _HinderedHost:
    def __init__(self, real: EngineAdapter, slow: Mapping[str, float]) -> None:
        self._real = real
        self._slow = slow
        self.asked: list[tuple[str, ...]] = []

    def measuring(self, names: Sequence[str]) -> Any:
        return _measuring(self._real, names, self._slow, self.asked)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> RunningServer:
    running: RunningServer = request.getfixturevalue(SERVERS[request.param])
    return running


@pytest.fixture
async def on_bench(control_dsn: str, server: RunningServer) -> AsyncIterator[Bench]:
    async with bench(control_dsn, server) as made:
        yield made


async def _made(on_bench: Bench, count: int) -> tuple[EngineAdapter, list[int], list[str]]:
    """As many active databases, whose use is recorded: the adapter of their host, their ids, their names on it."""
    engine = (await fetch("SELECT engine FROM engine_hosts"))[0]["engine"]
    made = [await on_bench.create(db_type=engine) for _ in range(count)]
    uuids = [UUID(one["uuid"]) for one in made]
    rows = await fetch("SELECT id, engine_name, host_id FROM databases WHERE uuid = any($1::uuid[]) ORDER BY id", uuids)
    await fetch(
        "INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month)"
        " SELECT id, $2::timestamptz, 0, false, $2::timestamptz::date FROM databases WHERE uuid = any($1::uuid[])",
        uuids,
        START,
    )
    adapter = await on_bench.adapters.of_host(rows[0]["host_id"])
    return adapter, [row["id"] for row in rows], [row["engine_name"] for row in rows]


async def _usage(database: int) -> dict[str, Any]:
    return dict((await fetch("SELECT * FROM database_usage WHERE database_id = $1", database))[0])


async def test_what_one_takes_is_not_the_others_time(on_bench: Bench) -> None:
    adapter, ids, names = await _made(on_bench, 4)
    host: Any = _HinderedHost(adapter, {names[1]: 1000})
    # A share of ten seconds: on a crowded machine a tenth of one may not be enough.
    bounds = msgspec.structs.replace(UNHURRIED, batch=500)
    assert await measuring.measure_storage(host, ids, START, bounds) == 3
    for database in (ids[0], *ids[2:]):
        found = await _usage(database)
        assert found["storage_measured_at"] == START
        assert found["measured_alone_at"] is None, "it is measured with the others again"
    failed = await _usage(ids[1])
    assert (failed["storage_measured_at"], failed["measure_failures"], failed["unmeasured_since"]) == (None, 1, START)
    assert failed["measured_alone_at"] > START
    host.asked.clear()
    later = START + timedelta(seconds=30)
    assert await measuring.measure_storage(host, ids, later, bounds) == 3
    assert host.asked == [(names[0], names[2], names[3])], "it waits for its next try, and is in nobody's batch"


async def test_who_fails_is_tried_later_and_later_with_more_time(on_bench: Bench) -> None:
    adapter, ids, names = await _made(on_bench, 1)
    host: Any = _HinderedHost(adapter, {names[0]: 5.5})
    at, waits = START, []
    for _ in range(3):
        counted = await measuring.measure_storage(host, ids, at)
        found = await _usage(ids[0])
        if counted:
            break
        waits.append(found["measured_alone_at"] - at)
        at = found["measured_alone_at"]
    assert len(waits) == 2, "two seconds, four, and six were enough"
    assert waits[1] >= 2 * waits[0]
    assert (found["storage_measured_at"], found["measure_failures"], found["unmeasured_since"]) == (at, 0, None)


async def test_the_longest_unmeasured_comes_first(on_bench: Bench) -> None:
    adapter, ids, names = await _made(on_bench, 3)
    host: Any = _HinderedHost(adapter, {})
    # Time for no more than one batch, of one database.
    little = Bounds(at_once=1, together=0, batch=60)
    for minute in range(6):
        assert await measuring.measure_storage(host, ids, START + timedelta(minutes=minute), little) == 1
    assert host.asked == [(name,) for name in names] * 2


async def test_who_stays_unmeasured_is_named_and_pays_for_its_hours(on_bench: Bench) -> None:
    adapter, ids, names = await _made(on_bench, 2)
    host: Any = _HinderedHost(adapter, {names[0]: 1000})
    await measuring.measure_storage(host, ids, datetime.now(UTC) - timedelta(minutes=16), UNHURRIED)
    [told] = [one for one in await check_records(timedelta(seconds=1)) if one.rule == "storage_unmeasured"]
    uuids = await fetch("SELECT uuid FROM databases WHERE id = $1", ids[0])
    assert told.subject == str(uuids[0]["uuid"])
    assert "statement timeout" in told.detail


async def test_a_host_that_cannot_be_measured_counts_its_hours_all_the_same(
    on_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = (await fetch("SELECT engine FROM engine_hosts"))[0]["engine"]
    made = await on_bench.create(db_type=engine)
    host = (await on_bench.record(made)).host_id

    def refuse(*_: Any) -> Any:
        raise EngineError("canceling statement due to statement timeout")

    monkeypatch.setattr(type(await on_bench.adapters.of_host(host)), "measuring", refuse)
    async with session_of(made):
        for minute in range(2):
            await on_bench.enforce(START + timedelta(minutes=minute))
    assert (await on_bench.usage(made))["runtime_seconds"] == 60
