"""A run on one host: what it finds, what it puts right, and what it leaves alone."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from app.backups.restores.records import NewRestoration
from app.backups.restores.records import insert as insert_restoration
from app.contracts.base import Engine
from app.contracts.restores import RestorationKind
from app.core.ids import engine_name, engine_password, marker
from app.databases import records as databases
from app.engines.base import EngineLimits, Tenant
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from app.upkeep.reconcile.hosts import inspect_host
from app.upkeep.reconcile.repairs import repair_host
from app.upkeep.reconcile.service import reconcile_host
from tests.e2e.hosts import login
from tests.support.client import Caller
from tests.upkeep.reconcile.conftest import AGE, Bench

ALMOST, AGED = AGE - timedelta(minutes=1), AGE + timedelta(minutes=1)
GONE = "status = 'deleted', deleted_at = now(), destroyed_at = now(), destroy_at = now()"
WRECK = {Engine.POSTGRES: "DROP OWNED BY current_user", Engine.MYSQL: "DROP DATABASE {name}"}


async def test_what_is_well_is_not_mentioned(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], "status = 'active'")
    await bench.run()
    assert await bench.findings(made["uuid"]) == []
    assert await bench.findings(made["db_name"]) == []


async def test_what_a_tenant_took_from_itself_is_given_back(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.as_tenant(made, WRECK[bench.host.engine].format(name=made["db_name"]))
    ran = await bench.run()
    assert "missing_on_host" in await bench.findings(made["uuid"])
    assert any(repair.startswith(f"Repaired database {made['uuid']}") for repair in ran.repairs)
    assert await login(made["connection_string"]) == 1
    await bench.run()
    assert await bench.findings(made["uuid"]) == []


@pytest.mark.parametrize("state", ["status = 'paused'", "status = 'deleted', revoked_at = now(), deleted_at = now()"])
async def test_what_was_ended_is_not_given_back(bench: Bench, caller: Caller, state: str) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await (await bench.adapter()).revoke_access(bench.tenant(made))
    await bench.set_row(made["uuid"], f"{state}, destroy_at = 'infinity'")
    await bench.run()
    found = await bench.on_host(made["db_name"])
    assert found is not None
    assert not found.admits
    assert await bench.findings(made["uuid"]) == []
    await (await bench.adapter()).restore_access(bench.tenant(made))
    await bench.run()
    assert await bench.findings(made["uuid"]) == ["access_open"]


async def test_an_active_database_that_is_closed_is_reported_and_stays_so(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await (await bench.adapter()).revoke_access(bench.tenant(made))
    await bench.set_row(made["uuid"], "status = 'active'")
    await bench.run()
    assert "access_closed" in await bench.findings(made["uuid"])
    found = await bench.on_host(made["db_name"])
    assert found is not None
    assert not found.admits


async def test_an_orphan_is_reported_first_and_removed_when_it_is_old(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], GONE)
    for older in (timedelta(0), ALMOST):
        await bench.age(made["db_name"], older)
        await bench.run()
        assert await bench.findings(made["db_name"]) == ["orphan_on_host"]
        assert await bench.on_host(made["db_name"]) is not None
    await bench.age(made["db_name"], AGED - ALMOST)
    ran = await bench.run()
    assert any(repair.startswith(f"Removed {made['db_name']}") for repair in ran.repairs)
    assert await bench.on_host(made["db_name"]) is None
    await bench.run()
    assert await bench.findings(made["db_name"]) == []


async def test_an_orphan_that_was_away_meanwhile_is_a_new_one(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], GONE)
    await bench.run()
    await bench.set_row(made["uuid"], "status = 'active', destroyed_at = NULL")
    await bench.age(made["db_name"], AGED)
    await bench.run()
    assert await bench.findings(made["db_name"]) == []
    await bench.set_row(made["uuid"], GONE)
    await bench.run()
    assert await bench.on_host(made["db_name"]) is not None


async def test_what_a_move_left_behind_is_removed_and_the_database_is_not(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    left = engine_name()
    adapter = await bench.adapter()
    remnant = Tenant(name=left, password=engine_password(), marker=marker(UUID(made["uuid"])))
    await adapter.create(remnant, EngineLimits(connections=1))
    await bench.run()
    await bench.age(left, AGED)
    await bench.run()
    assert await bench.on_host(left) is None
    assert await bench.on_host(made["db_name"]) is not None
    assert await login(made["connection_string"]) == 1


async def test_what_a_moved_database_left_open_is_closed_and_kept(bench: Bench, caller: Caller) -> None:
    """`CloseRemnant` had ended when its host was removed; now the host is registered again."""
    made = await caller.created(db_type=bench.host.engine)
    record = await databases.find(UUID(made["uuid"]))
    assert record is not None
    left = Tenant(name=engine_name(), password=engine_password(), marker=marker(record.uuid))
    await (await bench.adapter()).create(left, EngineLimits(connections=1))
    host_id = bench.host.host_id
    moved = NewRestoration(uuid=uuid4(), database_id=record.id, kind=RestorationKind.MOVE, from_host_id=host_id)
    await insert_restoration(moved)
    await fetch("UPDATE restorations SET ended_at = now(), outcome = 'completed' WHERE uuid = $1", moved.uuid)
    ran = await bench.run()
    assert any(repair.startswith(f"Ended access to {left.name}") for repair in ran.repairs)
    await bench.age(left.name, AGED)
    await bench.run()
    found = await bench.on_host(left.name)
    assert found is not None
    assert (found.has_database, found.admits) == (True, False)
    assert await login(made["connection_string"]) == 1
    (detail,) = await bench.details(left.name)
    assert f"hosts evacuate {host_id} --discard" in detail
    assert "to be removed" not in detail
    await fetch("UPDATE restorations SET from_released_at = now() WHERE uuid = $1", moved.uuid)
    (detail,) = await bench.details(left.name)
    assert "to be removed after" in detail
    await bench.run()
    assert await bench.on_host(left.name) is None


async def test_a_server_that_is_registered_under_a_second_address_loses_nothing(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], "status = 'active'")
    async with bench.second_address() as other:
        for _ in range(2):
            ran = await reconcile_host(DEFAULT_PLANS, bench.running.box, bench.adapters, other, AGE)
            await bench.age(made["db_name"], AGED)
        assert any(repair.startswith(f"Left {made['db_name']}: it stays until") for repair in ran.repairs)
        (detail,) = await bench.details(made["db_name"])
        assert made["uuid"] in detail
        assert bench.host.address in detail
    assert await login(made["connection_string"]) == 1


async def test_a_database_that_came_to_live_there_meanwhile_stays(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], GONE)
    await bench.run()
    await bench.age(made["db_name"], AGED)
    adapter = await bench.adapter()
    seen = await inspect_host(bench.known, adapter)
    await bench.set_row(made["uuid"], "status = 'provisioning', destroyed_at = NULL")
    repairs = await repair_host(seen, adapter, AGE)
    assert any("lives there by now" in repair and made["db_name"] in repair for repair in repairs)
    assert await bench.on_host(made["db_name"]) is not None
    await bench.set_row(made["uuid"], "status = 'active'")


async def test_a_host_that_does_not_answer_is_a_finding_and_keeps_the_others(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], GONE)
    await bench.run()
    async with bench.dead_host() as away:
        ran = await reconcile_host(DEFAULT_PLANS, bench.running.box, bench.adapters, away, AGE)
        rows = await fetch("SELECT rule, subject FROM findings WHERE host_id = $1", away.host_id)
    assert ran.findings == {"host_unreachable": 1}
    assert [tuple(row) for row in rows] == [("host_unreachable", away.address)]
    assert await bench.findings(made["db_name"]) == ["orphan_on_host"]
    await bench.set_row(made["uuid"], "status = 'active', destroyed_at = NULL")
