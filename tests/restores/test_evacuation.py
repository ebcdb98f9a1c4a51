"""Databases of a lost host come back on another one."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError

from app.backups.restores import records
from app.backups.restores.evacuation import EvacuationStatus, evacuate
from app.contracts.base import Engine
from app.contracts.upkeep import ScheduleId
from app.engines.base import FoundTenant
from app.hosts.adapters import Adapters
from app.store.session import fetch
from tests.restores.conftest import ENGINES
from tests.restores.hosts import add_server, another_server
from tests.restores.support import backed_up, filled, full, session, visits
from tests.servers import RunningServer
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.sampled import SampledDatabase
from tests.support.service import REGION, RunningService, SharedServers
from tests.support.store import store
from tests.support.waited import ended
from tests.support.waiting import until


@pytest_asyncio.fixture(scope="module")
async def service(
    tmp_path_factory: pytest.TempPathFactory,
    shared_servers: SharedServers,
) -> AsyncIterator[RunningService]:
    """One with a host of each engine. What hosts have too much goes soon."""
    async with shared_servers.service(
        tmp_path_factory.mktemp("evacuated"),
        RECONCILE_INTERVAL_SECONDS="2",
        ORPHAN_AGE_SECONDS="1",
        # The test measures by itself, at moments of its choice. A Schedule has a run in each interval, at a random
        # time: of an hour, that may be now.
        QUOTA_INTERVAL_SECONDS="1000000",
    ) as running:
        await until(lambda: _has_measured_once(running))
        yield running


async def _has_measured_once(service: RunningService) -> bool:
    """A Schedule has its first run when it is made."""
    client = await Client.connect(service.temporal.address, namespace=service.namespace)
    try:
        measuring = (await client.get_schedule_handle(ScheduleId.ENFORCE_QUOTAS.value).describe()).info
    except RPCError:
        return False
    return bool(measuring.recent_actions) and not measuring.running_actions


@pytest_asyncio.fixture
async def pair(
    tmp_path_factory: pytest.TempPathFactory, service: RunningService, engine: Engine
) -> AsyncIterator[tuple[RunningService, RunningServer]]:
    """The service, and another server of this engine."""
    async with another_server(engine, tmp_path_factory.mktemp("other")) as other, store(service.control_dsn):
        yield service, other


@pytest_asyncio.fixture
async def adapters(service: RunningService) -> AsyncIterator[Adapters]:
    opened = Adapters(service.box)
    yield opened
    await opened.close()


@pytest.mark.parametrize("engine", ENGINES)
async def test_with_name_users_and_passwords_from_the_newest_backup(
    pair: tuple[RunningService, RunningServer], engine: Engine, adapters: Adapters
) -> None:
    service, other = pair
    caller = await service.caller()
    made = await filled(caller, engine)
    path = f"/databases/{made['uuid']}"
    user = data_of(await caller.post(f"{path}/users", {"name": "reports", "access": "read_only"}), 201)
    readable = 3
    if engine is Engine.POSTGRES:
        readable = 2
        async with session(made) as tenant:
            await tenant.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
            await tenant.execute("CREATE POLICY everybody ON visits USING (true)")
            restricted = f"CREATE POLICY few ON visits AS RESTRICTIVE TO {user['db_username']} USING (id < 2)"
            await tenant.execute(restricted)
    rotated = data_of(await caller.post(f"{path}/credential_rotations", {"overlap_seconds": 0}))
    backup = await backed_up(caller, made)
    without = await filled(caller, engine)
    [host] = await fetch("SELECT id FROM engine_hosts WHERE engine = $1", engine.value)
    assert {one.status for one in await evacuate(host["id"])} == {
        EvacuationStatus.NO_ROOM,
        EvacuationStatus.NO_BACKUP,
    }, "there is no other host yet"
    await add_server(service, engine, other)
    sampled = SampledDatabase(caller, made["uuid"], REGION, adapters)
    await sampled.forget()
    for minute in (0, 1):
        await sampled.sample(minute)
    begun = {str(one.database): one for one in await evacuate(host["id"])}
    assert begun[without["uuid"]].status is EvacuationStatus.NO_BACKUP
    assert str(begun[made["uuid"]].backup) == backup["uuid"]
    assert begun[made["uuid"]].age_seconds is not None
    await until(lambda: _is_moved(host["id"], made["uuid"]))
    after = await full(caller, made["uuid"])
    assert (after["port"], after["status"]) == (other.port, "active")
    assert (after["db_username"], after["db_password"]) == (rotated["db_username"], rotated["db_password"])
    assert await visits(after) == 3
    moved = {"connection_string": user["connection_string"].replace(f":{made['port']}/", f":{other.port}/")}
    assert await visits(after | moved) == readable, "its users are there, and read no more than before"
    async with session(after | moved) as reader:
        with pytest.raises(Exception, match=r"denied|read-only"):
            await reader.execute("INSERT INTO visits VALUES (100, 'mine')")
    events = await fetch("SELECT type FROM events WHERE type = 'database.moved' AND team_id = $1", caller.team_id)
    assert len(events) == 1
    assert await visits(without) == 3, "what has no backup stays where it is"
    for minute in (2, 3):
        await sampled.sample(minute)
    await _restored_in_place(caller, made, backup)
    for minute in (4, 5):
        await sampled.sample(minute)
    await _has_gaps_where_it_was_moved_and_restored(sampled)
    async with session(after) as tenant:
        await tenant.execute("CREATE TABLE later (id integer)")
    await _stays_closed_until_given_up(adapters, host["id"], after)
    async with session(after) as tenant:
        await tenant.execute("DROP TABLE later")
    assert await visits(without) == 3


async def _restored_in_place(caller: Caller, made: dict[str, Any], backup: dict[str, Any]) -> None:
    path = f"/databases/{made['uuid']}/restorations"
    answer = await caller.post(path, {"backup_uuid": backup["uuid"]})
    operation = body_of(answer, 202)["operation"]["uuid"]
    assert (await ended(caller, operation))["status"] == "succeeded"


async def _has_gaps_where_it_was_moved_and_restored(sampled: SampledDatabase) -> None:
    assert await sampled.gaps() == [(1, 2), (3, 4)]
    for name in ("transactions", "rows_read", "rows_written"):
        points = await sampled.points(name)
        assert (set(points), min(points.values()) >= 0) == ({1, 3, 5}, True), (name, points)
    assert set(await sampled.points("connections")) == {0, 1, 2, 3, 4, 5}, "what a database has is known at once"


async def _stays_closed_until_given_up(adapters: Adapters, host_id: int, moved: dict[str, Any]) -> None:
    """What the old host has of it, now that it is back."""
    adapter = await adapters.of_host(host_id)

    async def found() -> FoundTenant | None:
        return next((one for one in await adapter.list_tenants() if one.name == moved["db_name"]), None)

    async def closed() -> bool:
        one = await found()
        return one is not None and one.has_database and not one.admits

    async def reported() -> bool:
        rows = await fetch(
            "SELECT 1 FROM findings WHERE host_id = $1 AND subject = $2 AND first_seen_at < now() - interval '3 s'",
            host_id,
            moved["db_name"],
        )
        return bool(rows)

    await until(closed)
    # For longer than other orphans stay.
    await until(reported)
    assert await found() is not None, "nobody removes what may be newer"
    assert await records.is_left_behind(UUID(moved["uuid"]), host_id)
    assert await records.give_up_left_behind(host_id) == 1

    async def gone() -> bool:
        return await found() is None

    await until(gone)


async def _is_moved(host_id: int, database: str) -> bool:
    [found] = [one for one in await evacuate(host_id) if str(one.database) == database]
    if found.status is EvacuationStatus.FAILED:
        reasons = await fetch("SELECT type, reason::text FROM operations WHERE reason IS NOT NULL")
        pytest.fail(f"it was not restored: {[tuple(one) for one in reasons]}")
    return found.status is EvacuationStatus.MOVED
