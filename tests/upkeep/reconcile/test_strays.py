"""What carries a marker of ours and stands in no record: whose it is decides what becomes of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from app.contracts.base import Engine
from app.core.ids import engine_name, engine_password, marker
from app.engines.base import EngineAdapter, EngineLimits, Tenant
from app.engines.registry import open_adapter
from tests.support.client import Caller
from tests.support.waiting import until
from tests.upkeep.reconcile.conftest import AGE, Bench

AGED = AGE + timedelta(minutes=1)


@asynccontextmanager
async def stray(bench: Bench, installation: str | None = None) -> AsyncIterator[Tenant]:
    """Made by the service's own adapter, or that of another installation, and not recorded."""
    ours = await bench.adapter()
    adapter: EngineAdapter = (
        ours if installation is None else open_adapter(ours.engine, ours.address, installation=installation)
    )
    tenant = Tenant(name=engine_name(), password=engine_password(), marker=marker(uuid4()))
    try:
        await adapter.create(tenant, EngineLimits(connections=2))
        yield tenant
    finally:
        await adapter.destroy(tenant)
        if adapter is not ours:
            await adapter.close()


async def test_what_we_made_and_have_no_record_of_is_removed_when_it_is_old(bench: Bench) -> None:
    async with stray(bench) as left:
        assert "3600 s after a scheduled run first sees it" in (await bench.details(left.name))[0]
        await bench.run()
        assert await bench.findings(left.name) == ["orphan_on_host"]
        assert "to be removed after" in (await bench.details(left.name))[0]
        assert await bench.on_host(left.name) is not None
        await bench.age(left.name, AGED)
        ran = await bench.run()
        assert any(repair.startswith(f"Removed {left.name}, which we had made") for repair in ran.repairs)
        assert await bench.on_host(left.name) is None


async def test_where_removal_is_switched_off_it_is_reported_for_ever(bench: Bench) -> None:
    async with stray(bench) as left:
        await bench.run(None)
        await bench.age(left.name, AGED)
        await bench.run(None)
        assert await bench.findings(left.name) == ["orphan_on_host"]
        assert await bench.on_host(left.name) is not None
        assert "switched off" in (await bench.details(left.name, None))[0]


async def test_while_somebody_uses_it_it_does_not_get_old(bench: Bench) -> None:
    async with stray(bench) as left:
        await bench.run()
        made = {"connection_string": _address(bench, await bench.adapter(), left)}
        async with bench.session(made):
            await bench.age(left.name, AGED)
            await bench.run()
            assert await bench.on_host(left.name) is not None

        adapter = await bench.adapter()

        async def is_idle() -> bool:
            return not await adapter.sessions([left.name])

        await until(is_idle)
        await bench.run()
        assert await bench.on_host(left.name) is not None, "it has its time again"
        await bench.age(left.name, AGED)
        await bench.run()
        assert await bench.on_host(left.name) is None


async def test_what_names_no_installation_is_left_to_the_operator(bench: Bench) -> None:
    async with stray(bench, installation="") as left:
        await bench.run()
        await bench.age(left.name, AGED)
        ran = await bench.run()
        assert any(
            repair.startswith(f"Left {left.name}: it stays until an operator removes it") for repair in ran.repairs
        )
        assert await bench.findings(left.name) == ["orphan_on_host"]
        assert "stays until an operator removes it" in (await bench.details(left.name))[0]
        assert await bench.on_host(left.name) is not None


async def test_what_another_installation_made_is_told_apart_and_left_alone(bench: Bench) -> None:
    async with stray(bench, installation="another") as theirs:
        for _ in range(2):
            await bench.run()
            await bench.age(theirs.name, AGED)
        assert await bench.findings(theirs.name) == []
        assert "is another installation's, another" in (await bench.details(theirs.name))[0]
        found = await bench.on_host(theirs.name)
        assert found is not None
        assert (found.marker, found.installation) == (theirs.marker, "another")


def _address(bench: Bench, adapter: EngineAdapter, tenant: Tenant) -> str:
    return (
        f"{adapter.uri_scheme}://{tenant.name}:{tenant.password}@{adapter.address.host}:{adapter.address.port}/"
        f"{tenant.name}"
    )


async def test_the_account_of_a_dump_whose_process_died_is_removed(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    account = f"{made['db_name']}_dump"
    admin = (await bench.adapter()).address
    address = f"{bench.host.engine.value}://{admin.user}:{admin.password}@{admin.host}:{admin.port}"
    statement = {
        Engine.POSTGRES: "SET createrole_self_grant = 'set, inherit';"
        f"CREATE ROLE {account} LOGIN VALID UNTIL '2026-01-01'",
        Engine.MYSQL: f"CREATE USER {account}@'%' IDENTIFIED BY 'Left0verPassw0rd'",
    }[bench.host.engine]
    database = f"/{admin.database}" if bench.host.engine is Engine.POSTGRES else ""
    await bench.as_tenant({"connection_string": address + database}, statement)
    assert "whose process has died" in (await bench.details(account))[0]
    ran = await bench.run()
    assert any(repair.startswith(f"Removed {account}, which a dump") for repair in ran.repairs), ran
    await bench.run()
    assert await bench.findings(account) == []
