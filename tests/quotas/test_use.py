"""Whose sessions count as use, and how much: on real hosts, at moments that the tests choose."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.contracts.base import DatabaseStatus
from app.core.ids import engine_password, marker
from app.credentials import restoring
from app.databases.hosted import RecordedDatabase
from app.engines.base import Tenant
from app.engines.querying import QueryLimits
from app.provisioning import enforcement
from app.upkeep.reconcile.logins import try_logins
from tests.quotas.bench import Bench, bench
from tests.quotas.tenant_session import session_of
from tests.servers import RunningServer
from tests.support.waiting import ended, until

START = datetime(2026, 11, 3, tzinfo=UTC)
ENGINES = pytest.mark.parametrize("engine", ["postgres", "mysql"])


@pytest.fixture
async def on_bench(
    control_dsn: str, postgres_server: RunningServer, mysql_server: RunningServer
) -> AsyncIterator[Bench]:
    async with bench(control_dsn, postgres_server, mysql_server) as made:
        yield made


@asynccontextmanager
async def again_and_again(deed: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    async def work() -> None:
        while True:
            await deed()

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        await ended(working)


async def _metered(on_bench: Bench, made: dict[str, Any], minutes: int) -> float:
    """The share of so many minutes, each with a measurement at its end, that counts as use."""
    for minute in range(minutes + 1):
        await on_bench.enforce(START + timedelta(minutes=minute))
    return float((await on_bench.usage(made))["runtime_seconds"]) / (60 * minutes)


@ENGINES
async def test_who_comes_and_goes_is_metered_for_about_the_time(
    on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No session lasts for long enough to be there at two looks. What is true is told look by look: a share of the
    time would be another one where this process was held up."""
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 1.0)
    made = await on_bench.create(db_type=engine)
    record = await on_bench.record(made)
    adapter = await on_bench.adapters.of_host(record.host_id)
    sessions, names = adapter.sessions, [record.engine_name]
    now, visits = "closed", 0
    looks: list[set[str]] = []

    async def look(asked: Sequence[str]) -> dict[str, frozenset[str]]:
        before, visit_before = now, visits
        found = await sessions(asked)
        looks.append({before, now} if visits == visit_before else {before, "changing", now})
        return found

    async def gone() -> bool:
        return not await sessions(names)

    async def visit() -> None:
        nonlocal now, visits
        now, visits = "changing", visits + 1
        async with session_of(made):
            now = "open"
            await asyncio.sleep(0.12)
            now = "changing"
        await until(gone)
        now = "closed"
        await asyncio.sleep(0.12)

    monkeypatch.setattr(adapter, "sessions", look)
    async with again_and_again(visit):
        share = await _metered(on_bench, made, 8)
    # Those of the first measurement, before which there is no time to count.
    del looks[: enforcement.SESSION_LISTS]
    assert len(looks) == 8 * enforcement.SESSION_LISTS
    certainly, possibly = (sum(one == {"open"} for one in looks), sum(one != {"closed"} for one in looks))
    assert possibly - certainly < len(looks), "of some it is certain what they saw"
    assert certainly <= share * len(looks) <= possibly


@ENGINES
async def test_who_stays_is_metered_for_all_of_it(
    on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.2)
    made = await on_bench.create(db_type=engine)
    async with session_of(made):
        assert await _metered(on_bench, made, 2) == 1


@ENGINES
async def test_our_own_logins_are_nobodys_use(on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.5)
    made = await on_bench.create(db_type=engine)
    record = await on_bench.record(made)
    adapter = await on_bench.adapters.of_host(record.host_id)
    row = RecordedDatabase(
        uuid=record.uuid,
        status=DatabaseStatus.ACTIVE,
        engine_name=record.engine_name,
        login=record.login,
        password_sealed=record.password_sealed,
        provisioned=True,
        revoked=False,
        frozen=False,
        changing=False,
        settled=True,
        connections=record.connections,
        refused=False,
        leaving=False,
    )
    logins = 0

    async def try_it() -> None:
        nonlocal logins
        logins += len(await try_logins(on_bench.box, adapter, [row])) == 0

    await on_bench.enforce(START - timedelta(minutes=1))
    async with again_and_again(try_it):
        assert await _metered(on_bench, made, 3) == 0
    assert logins > 2


@ENGINES
async def test_a_question_is_use(on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered by a helper's account, on the tenant's behalf."""
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.2)
    made = await on_bench.create(db_type=engine)
    record = await on_bench.record(made)
    adapter = await on_bench.adapters.of_host(record.host_id)
    tenant = Tenant(name=record.engine_name, password=made["db_password"], marker=marker(record.uuid))
    password = engine_password()
    await adapter.make_reader(tenant, password)
    async with adapter.reading(tenant, password, QueryLimits(seconds=10, rows=1)):
        assert await _metered(on_bench, made, 1) == 1


_CHANGES = {
    "postgres": "ALTER ROLE CURRENT_USER PASSWORD 'another'",
    "mysql": "SET PASSWORD = 'another'",
    "mariadb": "SET PASSWORD = PASSWORD('another')",
}


@ENGINES
async def test_a_tenant_that_has_its_password_put_back_hides_no_use(
    on_bench: Bench, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.5)
    made = await on_bench.create(db_type=engine)
    adapter = await on_bench.adapters.of_host((await on_bench.record(made)).host_id)
    change = _CHANGES[(await adapter.inspect_host()).flavour]
    restored = 0

    async with session_of(made) as session:

        async def change_it() -> None:
            nonlocal restored
            await session.run(change)
            restored += await restoring.restore(on_bench.plans, on_bench.box, adapter, UUID(made["uuid"]))

        async with again_and_again(change_it):
            assert await _metered(on_bench, made, 3) == 1
    assert restored > 2
