"""One team takes all connections of a host that it can: what the others and the service itself still get."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from temporalio.exceptions import ApplicationError

from activities.control import ControlActivitiesOnStore
from app.contracts.base import PauseReason
from app.core.settings import Settings
from app.databases import access
from app.engines.base import EngineAdapter, EngineError, HeldLimits, SessionCounts
from app.hosts.records import Host, registered_hosts
from app.provisioning.connections import look_after
from app.store.locks import database_lock
from app.store.session import execute, fetch, transaction
from app.upkeep.reconcile.held import UNRECORDED, check_held, release_held
from app.upkeep.reconcile.records import check_records
from app.upkeep.reconcile.snapshot import PATIENCE, take_snapshot
from tests import servers
from tests.credentials.stepped import Stepped
from tests.credentials.support import rotate
from tests.mysql_client import query
from tests.quotas.bench import REGION, Bench, bench
from tests.quotas.tenant_session import Session, refused, session_of
from tests.servers import RunningServer
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.metrics import scrape
from tests.support.waiting import ended, until
from workers.connections import watch_connections

ADMITTED = 60
START = datetime(2026, 11, 3, tzinfo=UTC)


@pytest.fixture(params=["postgres", "mysql_server", "oracle_mysql_server"])
def large(request: pytest.FixtureRequest) -> RunningServer | None:
    """A server that can be made to admit few; None for PostgreSQL, which has to be started so."""
    server: RunningServer | None = None if request.param == "postgres" else request.getfixturevalue(request.param)
    return server


@asynccontextmanager
async def _small_server(folder: Path, large: RunningServer | None) -> AsyncIterator[RunningServer]:
    if large is None:
        async with servers.postgres(folder, max_connections=str(ADMITTED), reserved_connections="6") as server:
            yield server
        return
    [(usual,)] = await query(large, "SELECT @@GLOBAL.max_connections")
    await query(large, f"SET GLOBAL max_connections = {ADMITTED}")
    try:
        yield large
    finally:
        await query(large, f"SET GLOBAL max_connections = {usual}")


async def _host() -> Host:
    (host,) = await registered_hosts(REGION)
    return host


async def _look(on_bench: Bench) -> bool:
    return await look_after(on_bench.plans, on_bench.adapters, await _host(), 0)


@asynccontextmanager
async def _watched(on_bench: Bench) -> AsyncIterator[None]:
    """What an engine worker does, more often, with its own bound on each look."""
    settings = Settings(connection_watch_seconds=0.2)
    task = asyncio.create_task(watch_connections(on_bench.plans, on_bench.adapters, settings, REGION))
    try:
        yield
    finally:
        await ended(task)


@asynccontextmanager
async def _grabbed(*greedy: dict[str, Any]) -> AsyncIterator[list[Session]]:
    """All sessions that the server gives these databases, and goes on giving: a client of theirs tries again for each
    that ends."""
    taken: list[Session] = []
    async with AsyncExitStack() as opened:

        async def grab(made: dict[str, Any]) -> None:
            while True:
                with suppress(Exception):
                    taken.append(await opened.enter_async_context(_kept(made)))
                    continue
                await asyncio.sleep(0.25)

        tasks = [asyncio.create_task(grab(made)) for made in greedy]
        try:
            yield taken
        finally:
            await ended(*tasks)


@asynccontextmanager
async def _kept(made: dict[str, Any]) -> AsyncIterator[Session]:
    """A session that the service may end: closing it may fail, and what fails in the block is the test's own."""
    opened = session_of(made)
    session = await opened.__aenter__()
    try:
        yield session
    finally:
        with suppress(Exception):
            await opened.__aexit__(None, None, None)


async def _in_the_end(work: Callable[[], Awaitable[Any]]) -> Any:
    """As Temporal repeats a step that fails."""

    async def attempt() -> list[Any] | None:
        try:
            return [await work()]
        except (ApplicationError, EngineError):
            return None

    found = await until(attempt)
    assert found is not None
    return found[0]


async def _events(made: dict[str, Any]) -> list[str]:
    rows = await fetch(
        "SELECT e.type FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1 ORDER BY e.id",
        UUID(made["uuid"]),
    )
    return [row["type"] for row in rows if "connections" in row["type"]]


async def _limited_to(caller: Caller, made: dict[str, Any]) -> int | None:
    """As its team sees it."""
    limited: int | None = data_of(await caller.get(f"/databases/{made['uuid']}"))["connections_limited_to"]
    return limited


async def _sees_limits(caller: Caller, held: list[dict[str, Any]]) -> bool:
    """Whether their team sees of each how many it gets."""
    rows = await fetch("SELECT at_most FROM connection_holds ORDER BY database_id")
    return [await _limited_to(caller, made) for made in held] == [row["at_most"] for row in rows]


async def test_a_team_that_takes_all_connections(control_dsn: str, tmp_path: Path, large: RunningServer | None) -> None:
    async with _small_server(tmp_path, large) as server, bench(control_dsn, server) as on_bench:
        db_type = "postgres" if large is None else "mysql"
        greedy_team = await on_bench.api.caller(tier="pro")
        stepped = Stepped(on_bench, greedy_team)
        greedy = [await stepped.created(db_type, connection_hard_limit=30) for _ in range(3)]
        other_team = Stepped(on_bench, await on_bench.api.caller(tier="pro"))
        modest = await other_team.created(db_type)
        adapter = await on_bench.adapters.of_host((await _host()).id)
        assert not await _look(on_bench)
        async with _grabbed(*greedy) as taken:

            async def is_full() -> bool:
                return len(taken) >= ADMITTED // 2 and await refused(modest)

            await until(is_full)
            async with _watched(on_bench):
                # Others get in, and all work of the service goes on, while the team goes on trying.
                # One attempt may find the place that another session has just left, and the next one not yet.
                await until(lambda: _gets_in(modest))
                fresh = (await other_team.caller.create("fresh", db_type=db_type, region=REGION)).json()["data"]
                await _in_the_end(lambda: on_bench.steps.create_database(UUID(fresh["uuid"])))
                assert (await on_bench.enforce(START)).databases == 5
                await _rotated(other_team, modest)
                await _pause(on_bench, greedy[0])
                await _in_the_end(lambda: on_bench.follow(greedy[0]))
                for made in greedy:
                    assert await _events(made) == ["database.connections_limited"]
                assert await _events(modest) == await _events(fresh) == []
                held = await fetch("SELECT at_most FROM connection_holds ORDER BY database_id")
                assert len(held) == 3
                assert all(3 <= row["at_most"] < 30 for row in held)
                assert len(await adapter.held()) == 3
                # The worker may share anew between the two: a paused database leaves what it had to the others.
                await until(lambda: _sees_limits(greedy_team, greedy))
                assert await _limited_to(other_team.caller, modest) is None
                page = await scrape(on_bench.api.http)
                host = {"host": (await _host()).address}
                assert page.value("headwater_host_connections_short", **host) == 1
                assert page.value("headwater_host_databases_held", **host) == 3
                assert page.value("headwater_host_connections_open", **host) >= 10
        await _calm(on_bench)
        assert await adapter.held() == []
        assert await fetch("SELECT 1 FROM connection_holds") == []
        assert await _events(greedy[1]) == ["database.connections_limited", "database.connections_restored"]
        assert await _limited_to(greedy_team, greedy[1]) is None
        async with AsyncExitStack() as opened:
            for _ in range(30):
                await opened.enter_async_context(session_of(greedy[1]))


async def _gets_in(made: dict[str, Any]) -> bool:
    return not await refused(made, "SELECT 42")


async def _rotated(team: Stepped, made: dict[str, Any]) -> None:
    """Its answer waits for the engine."""
    rotation = asyncio.create_task(rotate(team.caller, made))

    async def is_over() -> bool:
        with suppress(ApplicationError):
            await team.step(made)
        return rotation.done()

    await until(is_over)
    assert (await rotation)["status"] == "overlapping"


async def _pause(on_bench: Bench, made: dict[str, Any]) -> None:
    async with transaction():
        record = await on_bench.record(made)
        await access.pause(on_bench.plans, record, PauseReason.OPERATOR)


async def _calm(on_bench: Bench) -> None:
    """Until the host has been calm for long enough, by the row's clock."""

    async def is_over() -> bool:
        await execute("UPDATE host_connections SET calm_since = calm_since - interval '1 minute'")
        await _look(on_bench)
        return not await fetch("SELECT 1 FROM connection_holds")

    await until(is_over)


async def test_what_a_process_that_died_left_held(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made, other = [await on_bench.create() for _ in range(2)]
        host = await _host()
        adapter = await on_bench.adapters.of_host(host.id)
        record, unheld = await on_bench.record(made), await on_bench.record(other)
        # Between the engine and the row of a release, or before the engine was told.
        for one in (record, unheld):
            await execute(
                "INSERT INTO connection_holds (database_id, at_most, created_at)"
                " VALUES ($1, 2, now() - interval '1 hour')",
                one.id,
            )
        await adapter.hold(record.engine_name, HeldLimits(total=10, users={}, at_most=2))
        rules = [(one.rule, one.subject) for one in await check_records(PATIENCE)]
        assert {("connections_held", made["uuid"]), ("connections_held", other["uuid"])} <= set(rules)

        async def are_given_back() -> bool:
            # What takes a look too long it leaves to the next one.
            await _look(on_bench)
            return not await fetch("SELECT 1 FROM connection_holds")

        await until(are_given_back)
        assert await adapter.held() == []
        # And where no row is left.
        await adapter.hold(record.engine_name, HeldLimits(total=10, users={}, at_most=2))
        found = await check_held(await take_snapshot(host, adapter), adapter)
        assert [(one.rule, one.subject) for one in found] == [(UNRECORDED, made["uuid"])]

        async def is_released() -> bool:
            [sentence] = await release_held(on_bench.plans, adapter, found)
            assert made["uuid"] in sentence
            return not await adapter.held()

        await until(is_released)


async def test_what_is_destroyed_is_held_no_more(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made = await on_bench.create()
        record = await on_bench.record(made)
        adapter = await on_bench.adapters.of_host(record.host_id)
        hold = "INSERT INTO connection_holds (database_id, at_most, created_at) VALUES ($1, 2, now() - interval '1 h')"
        await execute(hold, record.id)
        await adapter.hold(record.engine_name, HeldLimits(total=10, users={}, at_most=2))
        await execute("UPDATE databases SET status = 'deleted', destroy_at = now() WHERE id = $1", record.id)
        await on_bench.steps.destroy_database(record.uuid)
        await ControlActivitiesOnStore(on_bench.plans).record_destroyed(record.uuid)
        assert await fetch("SELECT 1 FROM connection_holds") == []
        assert "connections_held" not in {one.rule for one in await check_records(PATIENCE)}
        # A look that has counted its sessions before writes this afterwards.
        await execute(hold, record.id)
        await _look(on_bench)
        assert await fetch("SELECT 1 FROM connection_holds") == []
        assert await adapter.held() == []
        assert await _events(made) == []


async def test_those_that_are_being_changed_keep_nobody_held(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made = [await on_bench.create() for _ in range(4)]
        await execute("INSERT INTO connection_holds (database_id, at_most) SELECT id, 2 FROM databases")
        async with AsyncExitStack() as changing:
            for one in made[:3]:
                await changing.enter_async_context(database_lock(UUID(one["uuid"])))

            async def are_left() -> set[str]:
                left = await fetch("SELECT d.uuid FROM connection_holds h JOIN databases d ON d.id = h.database_id")
                return {str(row["uuid"]) for row in left}

            async def is_over() -> bool:
                return made[3]["uuid"] not in await are_left()

            # Three that were waited for would take all the time that a look has, each time.
            async with _watched(on_bench):
                await until(is_over)
            assert await are_left() == {one["uuid"] for one in made[:3]}


async def test_a_team_that_locks_its_own_accounts(control_dsn: str, tmp_path: Path) -> None:
    async with _small_server(tmp_path, None) as server, bench(control_dsn, server) as on_bench:
        team = Stepped(on_bench, await on_bench.api.caller(tier="pro"))
        greedy = [await team.created("postgres", connection_hard_limit=30) for _ in range(2)]
        # Here the service's account has none of the reserved connections, but the one that looks.
        assert not await _look(on_bench)
        async with AsyncExitStack() as locking:
            for made in greedy:
                session = await locking.enter_async_context(_kept(made))
                await session.run("BEGIN")
                await session.run("ALTER ROLE CURRENT_USER PASSWORD 'Secret-4711'")
            async with _grabbed(*greedy) as taken:
                await until(lambda: len(taken) >= ADMITTED // 2)
                before = await _ended_sessions(on_bench)

                async def some_end() -> bool:
                    return await _ended_sessions(on_bench) > before

                async with _watched(on_bench):
                    await until(some_end)


async def _ended_sessions(on_bench: Bench) -> float:
    page = await scrape(on_bench.api.http)
    return page.value("headwater_sessions_ended_total", engine="postgres", reason="connections")


async def test_one_process_looks_at_a_time(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        host = await _host()
        await asyncio.gather(*(look_after(on_bench.plans, on_bench.adapters, host, 60) for _ in range(4)))
        [row] = await fetch("SELECT admitted, looked_at FROM host_connections")
        assert row["admitted"] > 900
        await look_after(on_bench.plans, on_bench.adapters, host, 60)
        assert (await fetch("SELECT admitted, looked_at FROM host_connections"))[0] == row


class _ShortHost:
    """A host that counts as short of connections. Stands for the adapters of all; holds when the test lets it."""

    def __init__(self, adapter: EngineAdapter, name: str) -> None:
        self._adapter = adapter
        self._counts = SessionCounts(limit=40, by_name={name: 30})
        self.asked = asyncio.Event()
        self.may_hold = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    async def of_host(self, host_id: int) -> "_ShortHost":
        return self

    async def session_counts(self) -> SessionCounts:
        return self._counts

    async def hold(self, name: str, limits: HeldLimits) -> None:
        self.asked.set()
        await self.may_hold.wait()
        await self._adapter.hold(name, limits)


async def test_two_looks_at_once_leave_nobody_held(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made, host = await on_bench.create(connection_hard_limit=30), await _host()
        adapter = await on_bench.adapters.of_host(host.id)
        short: Any = _ShortHost(adapter, made["db_name"])
        holding = asyncio.create_task(look_after(on_bench.plans, short, host, 0))
        await until(lambda: short.asked.is_set() or holding.done())
        await _look_when_calm(on_bench)
        short.may_hold.set()
        await holding
        await until(lambda: _look_when_calm(on_bench))
        assert await adapter.held() == []


async def _look_when_calm(on_bench: Bench) -> bool:
    """Another process's. Whether no row says any more that somebody is held."""
    await execute("UPDATE host_connections SET short_since = NULL")
    await _look(on_bench)
    return not await fetch("SELECT 1 FROM connection_holds")


async def test_what_was_given_back_while_a_look_waited_is_not_held(
    control_dsn: str, postgres_server: RunningServer
) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made, host = await on_bench.create(connection_hard_limit=30), await _host()
        adapter = await on_bench.adapters.of_host(host.id)
        short: Any = _ShortHost(adapter, made["db_name"])
        short.may_hold.set()
        async with database_lock(UUID(made["uuid"])):
            holding = asyncio.create_task(look_after(on_bench.plans, short, host, 0))

            async def waits() -> bool:
                return holding.done() or bool(await fetch(_LOCK_AWAITED))

            await until(waits)
            assert await execute("DELETE FROM connection_holds") == 1
        await holding
        assert await adapter.held() == []


_LOCK_AWAITED = """
SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
"""
