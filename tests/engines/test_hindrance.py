"""What a tenant holds, and for however long, puts off nothing that is done to it, and no measurement."""

import asyncio
from contextlib import suppress

import pytest

from app.engines.base import EngineError, EngineLimits, HostUnavailable, Tenant
from tests.engines.harness import EngineHost, RefusedError, kind_of, session_of, tenants
from tests.support.waiting import ended, until

TABLES = ("CREATE TABLE kept (n INT PRIMARY KEY, t VARCHAR(100))", "INSERT INTO kept VALUES (1, 'a')")
HELD: dict[str, dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "postgres": {
        "its own role": (("revoke_access", "set_limits"), ("BEGIN", "ALTER ROLE CURRENT_USER PASSWORD 'another'")),
        "all that it was granted": (
            ("revoke_access", "freeze", "thaw", "restore_access", "repair"),
            ("BEGIN", "DROP OWNED BY CURRENT_USER"),
        ),
        "rights on a table": (("freeze", "make_reader"), ("BEGIN", "GRANT SELECT ON kept TO PUBLIC")),
        "rights on a schema": (
            ("restore_access", "repair", "make_reader"),
            ("BEGIN", "GRANT ALL ON SCHEMA public TO PUBLIC"),
        ),
        "a table": (("freeze",), ("BEGIN", "LOCK TABLE kept IN ACCESS EXCLUSIVE MODE")),
        "a table that it drops": (("freeze", "thaw", "restore_access"), ("BEGIN", "DROP TABLE kept")),
    },
    "mysql": {
        "a table": (
            ("revoke_access", "set_limits", "freeze", "thaw", "restore_access", "repair", "make_reader"),
            ("LOCK TABLES kept WRITE",),
        ),
        "rows": (
            ("revoke_access", "set_limits", "freeze", "thaw", "restore_access", "repair", "make_reader"),
            ("BEGIN", "SELECT * FROM kept FOR UPDATE", "DELETE FROM kept"),
        ),
    },
}
"""By engine and by what is held: what is done to the tenant meanwhile, and the statements that hold it."""


async def _operate(host: EngineHost, tenant: Tenant, operation: str) -> None:
    match operation:
        case "set_limits":
            await host.adapter.set_limits(tenant, EngineLimits(connections=1))
        case "make_reader":
            await host.adapter.make_reader(tenant, "a-reader's-password")
        case _:
            await getattr(host.adapter, operation)(tenant)


@pytest.mark.parametrize(("engine", "held"), [(engine, held) for engine, kinds in HELD.items() for held in kinds])
async def test_what_a_tenant_holds_is_no_protection(host: EngineHost, engine: str, held: str) -> None:
    if engine != kind_of(host):
        pytest.skip(f"what a tenant of {engine} holds")
    operations, statements = HELD[engine][held]
    for operation in operations:
        async with tenants(host) as [tenant]:
            async with session_of(host, tenant) as session:
                for before in TABLES:
                    await session.run(before)
            if operation == "thaw":
                await host.adapter.freeze(tenant)
            async with session_of(host, tenant) as holding:
                for statement in statements:
                    await holding.run(statement)
                # Whoever waits for the lock to its end is refused by the server.
                await _operate(host, tenant, operation)


async def test_who_comes_back_to_hold_again_is_no_better_off(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("elsewhere no tenant holds its own account")
    async with tenants(host) as [tenant]:

        async def hold() -> None:
            while True:
                with suppress(RefusedError, ConnectionError):
                    async with session_of(host, tenant) as session:
                        await session.run("BEGIN")
                        await session.run(f"ALTER ROLE CURRENT_USER PASSWORD '{tenant.password}'")
                        await session.run("SELECT pg_sleep(600)")
                await asyncio.sleep(0.01)

        holders = [asyncio.create_task(hold()) for _ in range(4)]
        await until(lambda: _is_held(host, tenant))
        await host.adapter.set_limits(tenant, EngineLimits(connections=3))
        await host.adapter.revoke_access(tenant)
        await ended(*holders)


async def _is_held(host: EngineHost, tenant: Tenant) -> bool:
    return "SELECT pg_sleep(600)" in await host.statements(tenant.name)


OTHERS_HOLD = {
    "its role": "GRANT SELECT ON kept TO {name}",
    "the account of its dump": "GRANT SELECT ON kept TO {name}_dump",
    "its database": "ALTER ROLE CURRENT_USER IN DATABASE {name} SET work_mem = '4MB'",
}
"""What a tenant of PostgreSQL may hold of another's, by an open transaction."""


@pytest.mark.parametrize("held", OTHERS_HOLD)
async def test_what_another_tenant_holds_of_it_is_no_hindrance(host: EngineHost, held: str) -> None:
    if host.flavour != "postgres":
        pytest.skip("elsewhere no tenant locks another's account or database")
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as holding:
        await holding.run("CREATE TABLE kept (n int)")
        async with host.adapter.dumping(tenant):
            await holding.run("BEGIN")
            await holding.run(OTHERS_HOLD[held].format(name=tenant.name))
        async with host.adapter.dumping(tenant):
            pass
        await host.adapter.clear(tenant)
        await host.adapter.destroy(tenant)


async def test_another_tenant_that_names_its_role_and_holds_that_too_is_no_hindrance(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("elsewhere no tenant names another's account")
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as holding:
        await holding.run("CREATE TABLE kept (n int)")
        await holding.run(f"GRANT SELECT ON kept TO {tenant.name}")
        await holding.run("BEGIN")
        await holding.run("GRANT INSERT ON kept TO PUBLIC")
        await host.adapter.destroy(tenant)


async def test_a_setting_that_another_makes_for_its_database_is_no_login(host: EngineHost) -> None:
    """Or whoever makes one again and again would keep its access from ending."""
    if host.flavour != "postgres":
        pytest.skip("elsewhere there are no settings for a database")
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as holding:
        await holding.run("BEGIN")
        await holding.run(OTHERS_HOLD["its database"].format(name=tenant.name))
        await host.adapter.revoke_access(tenant)
        assert await holding.run("SELECT 1") == [(1,)]


LOCKED = 60
UNDER_WAY = {
    "postgres": ["SELECT pg_sleep(600)"],
    # Each of them holds its table, for as long as the tenant likes.
    "mysql": [f"CREATE TABLE made{number} AS SELECT SLEEP(600)" for number in range(4)],
}


async def test_what_one_tenant_holds_does_not_hold_up_the_measurement_of_others(host: EngineHost) -> None:
    kind = kind_of(host)
    async with tenants(host, 2) as [tenant, other]:
        busy = [await host.login(tenant) for _ in UNDER_WAY[kind]]
        running = [asyncio.create_task(s.run(statement)) for s, statement in zip(busy, UNDER_WAY[kind], strict=True)]
        await until(lambda: _at_work(host, tenant, len(busy)))
        measuring = asyncio.create_task(host.adapter.measure([tenant.name, other.name]))
        waits = 0
        while not measuring.done():
            waits += await host.lock_waits(host.administrator.user)
        assert set(await measuring) == {tenant.name, other.name}
        assert waits == 0
        assert not any(task.done() for task in running)
        await host.adapter.revoke_access(tenant)
        await asyncio.gather(*running, return_exceptions=True)
        for session in busy:
            await session.close()


@pytest.mark.parametrize("engine_server", ["oracle"], indirect=True, scope="session")
async def test_held_tables_in_the_servers_own_file_are_measured(host: EngineHost) -> None:
    """A DROP that waits for its last table holds all before it."""
    async with tenants(host, 2) as [tenant, other]:
        names = [f"held{number}" for number in range(LOCKED)]
        async with session_of(host, tenant) as session:
            for name in names:
                await session.run(f"CREATE TABLE {name} (t text) STATS_AUTO_RECALC=0 TABLESPACE=innodb_system")
            await session.run("CREATE TABLE last (n INT)")
            await session.run("CREATE TABLE `HELD0` (n INT)")
            await session.run("CREATE TABLE loaded (t text) TABLESPACE=innodb_system")
            await session.run(host.load_statement(8))
        await until(lambda: _is_above(host, tenant, 8 * 2**20))
        reading, dropping = await host.login(tenant), await host.login(tenant)
        await reading.run("BEGIN")
        await reading.run("SELECT * FROM last")
        drop = asyncio.create_task(dropping.run(f"DROP TABLE {', '.join(names)}, loaded, last"))
        await until(lambda: host.lock_waits(tenant.name))
        async with host.adapter.measuring([tenant.name, other.name]) as measuring:
            # Less than a second for each table that is held.
            measured = await measuring.usage([tenant.name, other.name], LOCKED / 2)
        assert measured[tenant.name].storage_bytes > 8 * 2**20
        assert other.name in measured
        await asyncio.gather(drop, return_exceptions=True)
        for session in (reading, dropping):
            await session.close()


@pytest.mark.parametrize("engine_server", ["oracle"], indirect=True, scope="session")
async def test_temporary_tables_are_measured_while_they_are_there(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            before = (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes
            await session.run("CREATE TEMPORARY TABLE loaded (t text)")
            await session.run(host.load_statement(16))
            during = (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes
            assert during - before > 16 * 2**20
        await until(lambda: _is_below(host, tenant, before + 2**20))


async def _at_work(host: EngineHost, tenant: Tenant, count: int) -> bool:
    return len(await host.statements(tenant.name)) == count


MANY = 3000
MAKES_TABLES = {
    "postgres": [
        f"DO $$ BEGIN FOR i IN 1..{MANY} LOOP EXECUTE 'CREATE TABLE many' || i || ' (t text)'; END LOOP; END $$"
    ],
    "mysql": [f"CREATE TABLE many{number} (n INT)" for number in range(MANY // 10)],
}


async def test_a_measurement_that_takes_too_long_ends_and_others_go_on(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        async with session_of(host, tenant) as session:
            for statement in MAKES_TABLES[kind_of(host)]:
                await session.run(statement)
        async with host.adapter.measuring([tenant.name, other.name]) as measuring:
            with pytest.raises(EngineError) as refused:
                await measuring.usage([tenant.name], 0.001)
            assert not isinstance(refused.value, HostUnavailable)
            assert set(await measuring.usage([other.name], 20)) == {other.name}
            assert set(await measuring.usage([tenant.name, other.name], 20)) == {tenant.name, other.name}


async def _is_above(host: EngineHost, tenant: Tenant, octets: int) -> bool:
    return (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes > octets


async def _is_below(host: EngineHost, tenant: Tenant, octets: int) -> bool:
    return (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes < octets
