"""A new database from a backup, and from another database."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.contracts.base import Engine
from app.databases.passwords import tenant_of
from app.databases.records import find
from app.engines.base import EngineAdapter
from app.hosts.adapters import Adapters
from app.store.locks import transfers_lock
from app.store.session import fetch
from tests.restores.conftest import ENGINES
from tests.restores.support import backed_up, filled, full, session, visits, waits_for
from tests.servers import RunningServer
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.shared_blocks import said_to_share
from tests.support.waited import WAIT, ended, waited
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine", ENGINES)


async def test_a_database_from_a_backup_holds_what_the_backup_holds(caller: Caller, engine: Engine) -> None:
    source = await filled(caller, engine, plan="launch", connection_hard_limit=7)
    backup = await backed_up(caller, source)
    async with session(source) as tenant:
        await tenant.execute("DELETE FROM visits")
    key = str(uuid4())
    body = {"name": "again", "source": {"backup_uuid": backup["uuid"]}}
    answer = await caller.post("/databases", body, key=key, params=WAIT)
    made = await waited(caller, answer, "/databases")
    assert await visits(made["data"]) == 3
    assert made["data"]["limits"]["connection_hard_limit"] == 7
    assert (made["data"]["plan"], made["data"]["db_type"]) == ("launch", engine.value)
    operation = data_of(await caller.get(f"/operations/{made['operation']['uuid']}"))
    assert (operation["type"], operation["status"]) == ("restore", "succeeded")
    assert {step["name"]: step["status"] for step in operation["steps"]} == {
        "place": "succeeded",
        "make": "succeeded",
        "load": "succeeded",
        "end_access": "skipped",
        "back_up": "skipped",
        "exchange": "skipped",
        "open": "succeeded",
    }
    again = body_of(await caller.post("/databases", body, key=key, params=WAIT), answer.status_code)
    assert again["data"]["uuid"] == made["data"]["uuid"]
    async with session(made["data"]) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'mine')")


async def test_restores_of_one_backup_at_once(caller: Caller, engine: Engine) -> None:
    source = await filled(caller, engine)
    backup = await backed_up(caller, source)
    async with session(source) as tenant:
        await tenant.execute("DELETE FROM visits")
    asked = {"backup_uuid": backup["uuid"]}
    answers = await asyncio.gather(
        caller.create("one", source=asked),
        caller.create("two", source=asked),
        caller.post(f"/databases/{source['uuid']}/restorations", asked),
    )
    begun = [body_of(answer, 202) for answer in answers]
    ends = await asyncio.gather(*(ended(caller, one["operation"]["uuid"]) for one in begun))
    assert [one["status"] for one in ends] == ["succeeded"] * 3
    for uuid in (begun[0]["data"]["uuid"], begun[1]["data"]["uuid"], source["uuid"]):
        assert await visits(await full(caller, uuid)) == 3


async def test_a_clone_holds_what_its_source_holds(caller: Caller, engine: Engine) -> None:
    source = await filled(caller, engine)
    async with session(source) as tenant:
        answer = await caller.create("clone", wait=True, source={"database_uuid": source["uuid"]})
        made = await waited(caller, answer, "/databases")
        # Its source's session goes on.
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    assert await visits(made["data"]) == 3
    operation = data_of(await caller.get(f"/operations/{made['operation']['uuid']}"))
    assert (operation["type"], operation["status"]) == ("clone", "succeeded")


async def test_a_clone_that_may_hold_up_its_source(
    service: RunningService, postgres_server: RunningServer, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    source = await filled(caller, engine)
    asked = {"database_uuid": source["uuid"], "pause_source": True}
    async with session(source) as tenant:
        made = await caller.created("dumped", source=asked)
        # Nothing is shared here, so it was not held up.
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    assert (await visits(made), await _held(made)) == (3, None)
    if engine is Engine.POSTGRES:

        async def copied() -> dict[str, Any]:
            """A clone; empty where the one try to copy came to nothing, as it may on a crowded machine."""
            one = await caller.created("copied", source=asked)
            held = await _held(one)
            assert held is not None
            return one if held else {}

        async with said_to_share(postgres_server):
            made = await until(copied)
        assert await visits(made) == await visits(source) == 4
        async with session(made) as tenant:
            await tenant.execute("DROP TABLE visits")


async def test_a_copy_is_tried_once(
    service: RunningService, postgres_server: RunningServer, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    if engine is not Engine.POSTGRES:
        pytest.skip("this engine copies nothing at once")
    source = await filled(caller, engine)
    asked = {"database_uuid": source["uuid"], "pause_source": True}
    async with said_to_share(postgres_server):
        made = body_of(await caller.create("again", source=asked), 202)
        for _ in range(2):
            await service.kill("worker")
            await service.start("worker")
        assert (await ended(caller, made["operation"]["uuid"]))["status"] == "succeeded"
    assert await visits(made["data"]) == await visits(source) == 3


async def test_nobody_gets_in_before_the_data_is_whole(
    service: RunningService, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    source = await filled(caller, engine)
    backup = await backed_up(caller, source)
    made: dict[str, Any] = data_of(await caller.create("again", source={"backup_uuid": backup["uuid"]}), 202)
    record = await find(UUID(made["uuid"]))
    assert record is not None
    adapter = await adapters.of_host(record.host_id)
    while (await find(record.uuid) or record).status.value == "provisioning":
        admitted = [one for one in await adapter.list_tenants() if one.name == record.engine_name and one.admits]
        now = await find(record.uuid)
        assert now is not None
        assert not admitted or now.status.value == "active" or now.restoring_at is not None
        await asyncio.sleep(0.01)
    await adapter.log_in(tenant_of(record, service.box))
    assert await visits(made) == 3


async def test_what_can_be_no_source(service: RunningService, caller: Caller, engine: Engine) -> None:
    source = await filled(caller, engine)
    backup = await backed_up(caller, source)
    stranger = await service.caller()
    for asked in ({"backup_uuid": backup["uuid"]}, {"database_uuid": source["uuid"]}):
        error_of(await stranger.create(source=asked), 404, "not_found")
    other = Engine.MYSQL if engine is Engine.POSTGRES else Engine.POSTGRES
    uuid = {"backup_uuid": backup["uuid"]}
    assert field_of(await caller.create(db_type=other.value, source=uuid)) == "db_type"
    assert field_of(await caller.create(source={})) == "source"
    both = {"backup_uuid": backup["uuid"], "database_uuid": source["uuid"]}
    assert field_of(await caller.create(source=both)) == "source"
    paused = {"backup_uuid": backup["uuid"], "pause_source": True}
    assert field_of(await caller.create(source=paused)) == "source.pause_source"
    elsewhere = await caller.create(region="eu-west-9", source={"database_uuid": source["uuid"]})
    assert field_of(elsewhere) == "region"


@pytest.mark.usefixtures("adapters")
async def test_an_older_major_version_and_another_flavour_take_none_of_it(caller: Caller, engine: Engine) -> None:
    source = await filled(caller, engine, rows=1)
    backup = await backed_up(caller, source)
    [(written,)] = await fetch("SELECT format::text FROM backups WHERE uuid = $1", UUID(backup["uuid"]))
    form = json.loads(written)
    other = "mariadb" if form["flavour"] == "mysql" else "mysql"
    for changed in (form | {"server_version": "99.1"}, form | {"flavour": other}):
        as_if = json.dumps(changed)
        await fetch("UPDATE backups SET format = $2::jsonb WHERE uuid = $1", UUID(backup["uuid"]), as_if)
        answer = await caller.create("new", source={"backup_uuid": backup["uuid"]})
        assert error_of(answer, 422, "capacity_exhausted")["details"] == {"field": "source"}
        answer = await caller.post(f"/databases/{source['uuid']}/restorations", {"backup_uuid": backup["uuid"]})
        details = error_of(answer, 422, "backup_incompatible")["details"]
        assert details == {"engine": engine.value, "engine_version": changed["server_version"]}


@pytest.mark.usefixtures("adapters")
async def test_clones_of_one_database_come_one_after_the_other(caller: Caller, engine: Engine) -> None:
    """Else each would take the dump's account from the one before, and begin again."""
    source, other = await filled(caller, engine), await filled(caller, engine)
    async with transfers_lock(uuid4()) as earlier:
        await earlier.keep_clones_waiting(UUID(source["uuid"]))
        later, beside = [
            body_of(await caller.create(f"clone-{n}", source={"database_uuid": one["uuid"]}), 202)["operation"]["uuid"]
            for n, one in enumerate((source, other))
        ]
        assert (await ended(caller, beside))["status"] == "succeeded"
        await until(lambda: waits_for(caller, later, "queued"))
        await backed_up(caller, source)
        # For a moment it is tried again, now and then.
        await until(lambda: waits_for(caller, later, "queued"))
    assert (await ended(caller, later))["status"] == "succeeded"


async def test_cancelling_leaves_nothing(
    service: RunningService, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    source = await filled(caller, engine)
    backup = await backed_up(caller, source)
    async with AsyncExitStack() as filling:
        async with service.frozen("worker"):
            body = body_of(await caller.create("again", source={"backup_uuid": backup["uuid"]}), 202)
            uuid = UUID(body["data"]["uuid"])
            await filling.enter_async_context(transfers_lock(uuid))
        record = await find(uuid)
        assert record is not None
        adapter, name = await adapters.of_host(record.host_id), record.engine_name
        await until(lambda: _is_there(adapter, name))
        data_of(await caller.post(f"/operations/{body['operation']['uuid']}/cancellations", None))
    operation = await ended(caller, body["operation"]["uuid"])
    assert operation["status"] == "cancelled"
    error_of(await caller.get(f"/databases/{body['data']['uuid']}"), 404, "not_found")
    await until(lambda: _gone(uuid))
    assert not await _is_there(adapter, name)


async def _is_there(adapter: EngineAdapter, name: str) -> bool:
    return name in {one.name for one in await adapter.list_tenants()}


async def _held(made: dict[str, Any]) -> float | None:
    [row] = await fetch(
        "SELECT r.held_seconds FROM restorations r JOIN databases d ON d.id = r.database_id WHERE d.uuid = $1",
        UUID(made["uuid"]),
    )
    held: float | None = row["held_seconds"]
    return held


async def _gone(database: UUID) -> bool:
    record = await find(database)
    return record is not None and record.destroyed_at is not None
