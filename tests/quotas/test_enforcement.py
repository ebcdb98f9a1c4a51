"""Enforcement step by step on real hosts: the month turns, hosts fall ill, and processes die between two steps."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from app.backups.restores import in_place
from app.backups.restores import records as restorations
from app.backups.restores.records import NewRestoration
from app.contracts.base import DatabaseStatus, Engine, PauseReason
from app.contracts.restores import RestorationKind
from app.core.ids import marker, new_uuid
from app.databases import access
from app.engines.base import AdminAddress, Tenant, Usage
from app.engines.querying import QueryFailed, QueryLimits
from app.hosts.adapters import admin_place
from app.local.ports import LOOPBACK
from app.provisioning import enforcement, operator
from app.quotas import usage
from app.quotas.decision import GROWTH_BYTES, decide
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from tests import mysql_client
from tests.quotas.bench import REGION, Bench, bench
from tests.quotas.tenant_session import refused, session_of
from tests.servers import RunningServer
from tests.support.moves import events_of
from tests.support.pending_starts import pending_ids
from tests.support.ports import free_port
from tests.support.waiting import LIMIT_SECONDS, until

START = datetime(2026, 11, 3, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, 0, 0, 5, tzinfo=UTC)
HOUR = 3600.0
_RUNNING_FOR_TWO_SECONDS = (
    "SELECT 1 FROM information_schema.processlist"
    " WHERE info LIKE '%DO SLEEP(300)%' AND time >= 2 AND id <> connection_id()"
)


@pytest_asyncio.fixture
async def on_bench(
    control_dsn: str, postgres_server: RunningServer, mysql_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bench]:
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.3)
    async with bench(control_dsn, postgres_server, mysql_server) as made:
        yield made


async def test_what_a_question_left_running_is_ended(on_bench: Bench, mysql_server: RunningServer) -> None:
    made = await on_bench.create(db_type="mysql")
    record = await on_bench.record(made)
    tenant = Tenant(name=made["db_name"], password=made["db_password"], marker=marker(record.uuid))
    adapter = await on_bench.adapters.of_host(record.host_id)
    async with adapter.writing(tenant, QueryLimits(seconds=300, rows=1)) as session:
        running = asyncio.create_task(session.write("DO SLEEP(300)"))
        await until(partial(mysql_client.query, mysql_server, _RUNNING_FOR_TWO_SECONDS))
        assert (await on_bench.enforce(START)).moves == {}
        on_bench.overdue = 1.0
        assert (await on_bench.enforce(START)).moves == {"ended_overdue": 1}
        with pytest.raises(QueryFailed):
            await running


async def test_removing_what_its_tenant_deleted_is_no_growth(on_bench: Bench, mysql_server: RunningServer) -> None:
    """It makes the file of a rebuilt table longer for good."""
    made = await on_bench.create(db_type="mysql", storage_hard_limit_gb=0.01)
    async with session_of(made) as session:
        await session.load(20)
    name = (await on_bench.record(made)).engine_name
    await mysql_client.query(mysql_server, f"OPTIMIZE TABLE `{name}`.loaded")
    assert "frozen" in (await on_bench.enforce(START)).moves
    await on_bench.follow(made)
    await on_bench.enforce(START + timedelta(minutes=1))
    least = (await on_bench.usage(made))["frozen_bytes"]
    async with session_of(made) as session:
        await session.run("DELETE FROM loaded")
    free = f"SELECT data_free FROM information_schema.tables WHERE table_schema = '{name}' AND data_free > {20 * 2**20}"
    await until(partial(mysql_client.query, mysql_server, free))
    for minute in (2, 3):
        assert (await on_bench.enforce(START + timedelta(minutes=minute))).moves == {}
    assert (await on_bench.usage(made))["storage_bytes"] > least


async def test_a_rebuild_that_takes_long_is_no_growth(on_bench: Bench) -> None:
    """Held by the function of the table's index, when the new table is written and the old one is there."""
    made = await on_bench.create(storage_hard_limit_gb=0.01)
    lock = "pg_advisory_xact_lock(5)"
    async with session_of(made) as session:
        await session.load(20)
        await session.run(
            "CREATE FUNCTION held(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE"
            f" AS 'BEGIN PERFORM {lock}; RETURN n; END'"
        )
        await session.run("CREATE INDEX ON loaded (held(length(t)))")
    assert "frozen" in (await on_bench.enforce(START)).moves
    record = await on_bench.follow(made)
    await on_bench.enforce(START + timedelta(minutes=1))
    adapter = await on_bench.adapters.of_host(record.host_id)

    async def grew() -> bool:
        least = (await on_bench.usage(made))["frozen_bytes"]
        measured = (await adapter.measure([record.engine_name]))[record.engine_name]
        return bool(measured.storage_bytes > least + GROWTH_BYTES)

    async with session_of(made) as holding, session_of(made) as session:
        await holding.run("BEGIN")
        await holding.run(f"SELECT {lock}")
        rebuild = asyncio.create_task(session.run("VACUUM FULL loaded"))
        await until(grew)
        for minute in (2, 3, 4):
            assert (await on_bench.enforce(START + timedelta(minutes=minute))).moves == {}
        await holding.run("COMMIT")
        await rebuild
    assert (await on_bench.enforce(START + timedelta(minutes=5))).moves == {}
    assert not await grew()


async def test_the_measurement_after_a_rebuild_still_counts_as_one_of_it(on_bench: Bench) -> None:
    """The old table is removed when the server no longer shows the rebuild."""
    record = await on_bench.record(await on_bench.create())
    await on_bench.enforce(START)
    seen = []
    for minute, rebuilding in enumerate([True, False, False], 1):
        found = {record.id: Usage(storage_bytes=1, connections=0, rebuilding=rebuilding)}
        await usage.record_storage(found, START + timedelta(minutes=minute))
        seen.append((await usage.standings(DEFAULT_PLANS, [record.id]))[record.id].rebuilding)
    assert seen == [True, True, False]


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_what_is_found_while_it_is_restored_lifts_nothing(on_bench: Bench, engine: str) -> None:
    """It is empty then, or half loaded."""
    made = await on_bench.create(db_type=engine)
    record = await on_bench.record(made)
    full = int(DEFAULT_PLANS.by_name[record.plan].limits.storage_hard_limit_gb * 2**30)
    await on_bench.enforce(START)
    at = START + timedelta(minutes=1)
    await usage.record_storage({record.id: Usage(storage_bytes=full, connections=0)}, at)
    closed = "status = 'paused', paused_reason = 'storage', frozen_at = now(), restoring_at = now()"
    await fetch(f"UPDATE databases SET {closed} WHERE uuid = $1", record.uuid)
    assert (await on_bench.enforce(START + timedelta(minutes=2))).moves == {}
    now, used = await on_bench.record(made), await on_bench.usage(made)
    assert (now.paused_reason, now.frozen_at is not None) == (PauseReason.STORAGE, True)
    assert (used["storage_bytes"], used["storage_measured_at"]) == (full, at)
    # Nor what was measured by one who didn't know of it yet.
    await usage.record_storage({record.id: Usage(storage_bytes=0, connections=0)}, START + timedelta(minutes=3))
    assert (await on_bench.usage(made))["storage_bytes"] == full
    await fetch("UPDATE databases SET restoring_at = NULL WHERE uuid = $1", record.uuid)
    assert (await on_bench.enforce(START + timedelta(minutes=4))).moves == {"resumed": 1, "thawed": 1}


async def test_more_data_than_before_its_restore_is_no_growth(on_bench: Bench) -> None:
    record = await on_bench.record(await on_bench.create())
    at, full = START, int(DEFAULT_PLANS.by_name["free"].limits.storage_hard_limit_gb * 2**30)
    await on_bench.enforce(at)
    await fetch("UPDATE databases SET plan = 'free', frozen_at = now() WHERE uuid = $1", record.uuid)

    async def judged(size: int) -> tuple[int | None, int]:
        nonlocal at
        at += timedelta(minutes=1)
        await usage.record_storage({record.id: Usage(storage_bytes=size, connections=0)}, at)
        verdict = decide((await usage.standings(DEFAULT_PLANS, [record.id]))[record.id])
        await usage.remember(record.id, verdict)
        return verdict.frozen_bytes, verdict.growing

    larger = full + 2 * GROWTH_BYTES
    assert [await judged(full), await judged(larger)] == [(full, 0), (full, 1)]
    restoration = new_uuid()
    await fetch("UPDATE databases SET restoring_at = now() WHERE uuid = $1", record.uuid)
    async with transaction():
        kind = RestorationKind.IN_PLACE
        await restorations.insert(NewRestoration(uuid=restoration, database_id=record.id, kind=kind))
    await in_place.note_restored(DEFAULT_PLANS, restoration, record.access_revision)
    assert [await judged(larger), await judged(larger)] == [(larger, 0), (larger, 0)]


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_a_free_database_runs_its_hours_and_comes_back_when_the_month_turns(on_bench: Bench, engine: str) -> None:
    on_bench.gap = 60 * HOUR
    made = await on_bench.create(tier="free", db_type=engine)
    async with session_of(made) as session:
        await on_bench.enforce(START)
        await on_bench.enforce(START + timedelta(hours=50))
        assert (await on_bench.record(made)).status is DatabaseStatus.ACTIVE
        measured = await on_bench.enforce(START + timedelta(hours=100))
        assert measured.moves == {"paused_runtime": 1}
        record = await on_bench.follow(made)
        assert (record.status, record.paused_reason) == (DatabaseStatus.PAUSED, PauseReason.RUNTIME)
        with pytest.raises(Exception, match=r".*"):
            await session.run("SELECT 1")
    assert await refused(made)
    assert (await on_bench.enforce(START + timedelta(hours=200))).moves == {}
    assert (await on_bench.enforce(DECEMBER)).moves == {"resumed": 1}
    assert (await on_bench.record(made)).status is DatabaseStatus.PAUSED, "until its tenant can come in"
    assert (await on_bench.follow(made)).status is DatabaseStatus.ACTIVE
    assert not await refused(made)
    assert (await events_of(made["uuid"]))[-2:] == ["database.paused", "database.resumed"]


async def test_other_plans_run_as_long_as_they_like(on_bench: Bench) -> None:
    on_bench.gap = 1000 * HOUR
    made = await on_bench.create(plan="launch")
    async with session_of(made):
        for hours in (0, 300, 600):
            assert (await on_bench.enforce(START + timedelta(hours=hours))).moves == {}
    assert (await on_bench.usage(made))["runtime_seconds"] == 600 * HOUR


async def test_more_hours_bring_it_back_and_an_operator_may_excuse_it(
    on_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_bench.gap = 200 * HOUR
    made, excused = await on_bench.create(tier="free"), await on_bench.create(tier="free")
    async with session_of(made), session_of(excused):
        for hours in (0, 110):
            await on_bench.enforce(START + timedelta(hours=hours))
        for one in (made, excused):
            assert (await on_bench.follow(one)).paused_reason is PauseReason.RUNTIME
    monkeypatch.setattr(operator, "utc_now", lambda: START)
    await operator.resume((await on_bench.record(excused)).uuid)
    assert (await on_bench.follow(excused)).status is DatabaseStatus.ACTIVE
    assert (await on_bench.enforce(START + timedelta(hours=111))).moves == {}
    plans = DEFAULT_PLANS.by_name
    on_bench.plans = msgspec.structs.replace(DEFAULT_PLANS, by_name={**plans, "free": plans["launch"]})
    assert (await on_bench.enforce(START + timedelta(hours=112))).moves == {"resumed": 1}


async def _database_on_a_host_at(on_bench: Bench, port: int) -> None:
    """As if it had been made there while the host was well."""
    address = AdminAddress(host=LOOPBACK, port=port, user="nobody", password="nothing")
    sealed = on_bench.box.seal(msgspec.json.encode(address).decode(), admin_place(Engine.POSTGRES, LOOPBACK, port))
    host = await on_bench.api.add_host(region=REGION, host=LOOPBACK, port=port, admin_sealed=sealed)
    made = (await (await on_bench.api.caller()).create(region=REGION)).json()["data"]
    await fetch(
        "UPDATE databases SET status = 'active', host_id = $2, remote_since = NULL WHERE uuid = $1",
        UUID(made["uuid"]),
        host,
    )


async def test_a_host_that_is_down_or_hangs_holds_up_nobody(on_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcement, "HOST_SECONDS", 2.0)
    made = await on_bench.create()
    down, minutes = free_port(), count()
    async with silent_server() as hanging:
        for port in (down, hanging):
            await _database_on_a_host_at(on_bench, port)
        ill = {f"{LOOPBACK}:{down}", f"{LOOPBACK}:{hanging}"}

        async def only_they_are_unreachable() -> bool:
            measured = await on_bench.enforce(START + timedelta(minutes=next(minutes)))
            return measured.databases == 1 and set(measured.unreachable) == ill

        # On a machine with other work the short time may not suffice for the host that is well, once.
        async with asyncio.timeout(LIMIT_SECONDS):
            await until(only_they_are_unreachable)
    assert await fetch("SELECT 1 FROM engine_hosts WHERE port = $1 AND sick_until > now()", down)
    assert (await on_bench.usage(made))["storage_bytes"] > 0


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """A port on which connections are taken and nothing is ever said."""
    over = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, LOOPBACK, 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        over.set()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_a_step_that_died_between_the_engine_and_the_record_is_made_again(
    on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await on_bench.create(db_type=engine)
    uuid = (await on_bench.record(made)).uuid

    async def die(*_: Any) -> None:
        raise ConnectionResetError

    pause = partial(operator.pause, DEFAULT_PLANS)
    for verb, closed in ((pause, True), (operator.resume, False)):
        await verb(uuid)
        with monkeypatch.context() as patch:
            patch.setattr(access, "record_applied", die)
            with pytest.raises(ApplicationError):
                await on_bench.steps.apply_access(uuid)
        before = await on_bench.record(made)
        assert before.access_applied < before.access_revision
        assert before.status is DatabaseStatus.PAUSED
        after = await on_bench.follow(made)
        assert after.access_applied == after.access_revision
        assert await refused(made) is closed
    assert (await on_bench.record(made)).status is DatabaseStatus.ACTIVE
    assert (await events_of(made["uuid"])).count("database.resumed") == 1


async def test_a_decision_is_recorded_with_what_it_changes_and_made_once(on_bench: Bench) -> None:
    made = await on_bench.create(storage_hard_limit_gb=0.001)
    first = await on_bench.enforce(START)
    assert first.moves == {"frozen": 1, "warned": 1}
    assert f"apply-access/{made['uuid']}/1" in await pending_ids()
    for seconds in (0, 60, 120):
        assert (await on_bench.enforce(START + timedelta(seconds=seconds))).moves == {}
    assert (await events_of(made["uuid"])).count("database.quota_warning") == 1
    assert (await on_bench.follow(made)).frozen_at is not None
    assert await refused(made, "CREATE TABLE more (n int)")


async def test_a_resumption_that_is_overtaken_by_a_pause_stays_closed(on_bench: Bench) -> None:
    made = await on_bench.create()
    uuid = (await on_bench.record(made)).uuid
    await operator.pause(DEFAULT_PLANS, uuid)
    await on_bench.follow(made)
    await operator.resume(uuid)
    # The step has read the row, and opened the engine; now it is paused anew.
    revision = (await on_bench.record(made)).access_revision
    await operator.pause(DEFAULT_PLANS, uuid)
    await access.record_applied(DEFAULT_PLANS, uuid, revision)
    assert (await on_bench.record(made)).status is DatabaseStatus.PAUSED
    assert (await on_bench.follow(made)).status is DatabaseStatus.PAUSED
    assert await refused(made)
    assert (await events_of(made["uuid"])).count("database.resumed") == 0
