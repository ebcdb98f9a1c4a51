"""When `revoke` returns, nothing of the tenant's succeeds any more, whatever it was in the middle of."""

import asyncio
import time

import pytest

from app.engines.base import EngineLimits, LoginRefused, Tenant
from tests.engines.harness import EngineHost, RefusedError, as_root, session_of, tenants

MANY = EngineLimits(connections=20)


async def hammer(host: EngineHost, tenant: Tenant, successes: list[float]) -> None:
    """Logs in and writes, over and over, until cancelled. Notes when a statement began that succeeded."""
    while True:
        try:
            async with session_of(host, tenant) as session:
                while True:
                    began = time.monotonic()
                    await session.run("INSERT INTO kept VALUES (1)")
                    successes.append(began)
        except (RefusedError, ConnectionError):
            await asyncio.sleep(0)


async def test_open_sessions_die_and_nobody_comes_back(host: EngineHost) -> None:
    async with tenants(host, limits=MANY) as [tenant]:
        held = await host.login(tenant)
        await held.run("CREATE TABLE kept (n INT)")
        await held.run("BEGIN")
        await held.run("INSERT INTO kept VALUES (0)")
        successes: list[float] = []
        clients = [asyncio.create_task(hammer(host, tenant, successes)) for _ in range(6)]
        await asyncio.sleep(0.3)
        assert successes
        await host.adapter.revoke(tenant)
        returned = time.monotonic()
        await asyncio.sleep(0.5)
        assert [began for began in successes if began > returned] == []
        with pytest.raises(ConnectionError):
            await held.run("COMMIT")
        assert (await host.adapter.measure([tenant.name]))[tenant.name].connections == 0
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await held.close()

        await host.adapter.restore(tenant)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT COUNT(*) FROM kept WHERE n = 0") == [(0,)], "what wasn't committed is gone"
            [(kept,)] = await session.run("SELECT COUNT(*) FROM kept")
            # Each client may have lost the answer to one commit.
            assert len(successes) <= kept <= len(successes) + len(clients), "all that was committed is still there"


async def test_a_statement_under_way_is_stopped(host: EngineHost) -> None:
    sleep = "SELECT pg_sleep(30)" if host.flavour == "postgres" else "SELECT SLEEP(30)"
    async with tenants(host) as [tenant]:
        session = await host.login(tenant)
        running = asyncio.create_task(session.run(sleep))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await host.adapter.revoke(tenant)
        assert time.monotonic() - began < 5
        with pytest.raises((ConnectionError, RefusedError)):
            await running
        await session.close()


async def test_credentials_are_refused_until_restored(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke(tenant)
        assert [row for row in await host.catalog() if row[:2] == ("grant", tenant.name)] == []
        with pytest.raises(LoginRefused):
            await host.adapter.verify_login(tenant)
        await host.adapter.restore(tenant)
        await host.adapter.verify_login(tenant)


async def test_other_tenants_keep_their_sessions(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as session:
        await host.adapter.revoke(tenant)
        await host.adapter.destroy(tenant)
        assert await session.run("SELECT 1") == [(1,)]


async def test_helper_roles_lose_their_sessions_too(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        before = await host.catalog()
        helper = Tenant(name=f"{tenant.name}_ro", password="Helper-passw0rd", marker=tenant.marker)
        await host.make_helper(tenant, helper)
        session = await host.login(helper, database=tenant.name)
        await host.adapter.revoke(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
        with pytest.raises(RefusedError):
            await host.login(helper, database=tenant.name)
        await host.adapter.restore(tenant)
        async with session_of(host, tenant) as session:
            await session.run("SELECT 1")
        await (await host.login(helper, database=tenant.name)).close()
        await host.adapter.destroy(tenant)
        assert {row for row in await host.catalog() if helper.name in row} == set()
        assert before


async def test_a_longer_name_is_another_tenant(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        longer = Tenant(name=f"{tenant.name}2", password=tenant.password, marker=f"{tenant.marker}2")
        await host.adapter.create(longer, MANY)
        async with session_of(host, longer) as session:
            await host.adapter.revoke(tenant)
            await host.adapter.destroy(tenant)
            assert await session.run("SELECT 1") == [(1,)]
        await host.adapter.destroy(longer)


async def test_a_revocation_that_died_half_way_is_finished(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        session = await host.login(tenant)
        # The login is closed, the session is not.
        statement = f"ALTER ROLE {tenant.name} NOLOGIN"
        if host.flavour != "postgres":
            statement = f"ALTER USER {tenant.name}@'%' ACCOUNT LOCK"
        await as_root(host, statement)
        assert await session.run("SELECT 1") == [(1,)]
        await host.adapter.revoke(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
