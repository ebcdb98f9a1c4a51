"""When `revoke` returns, nothing of the tenant's succeeds any more, whatever it was in the middle of."""

import asyncio

import pytest

from app.engines.base import EngineLimits, LoginRefused, Tenant
from tests.engines.harness import EngineHost, RefusedError, as_root, session_of, tenants
from tests.support.waiting import LIMIT_SECONDS, ended, until

MANY = EngineLimits(connections=20)


class Client:
    """Logs in and writes, over and over, until cancelled."""

    def __init__(self, revoked: asyncio.Event) -> None:
        self._revoked = revoked
        self.written = 0
        self.written_afterwards = 0
        """By statements that began when the access was revoked already."""
        self.refused_afterwards = 0
        """Logins that began then."""

    async def go_on(self, host: EngineHost, tenant: Tenant) -> None:
        while True:
            afterwards = self._revoked.is_set()
            try:
                async with session_of(host, tenant) as session:
                    while True:
                        afterwards = self._revoked.is_set()
                        await session.run("INSERT INTO kept VALUES (1)")
                        self.written += 1
                        self.written_afterwards += afterwards
            except (RefusedError, ConnectionError):
                self.refused_afterwards += afterwards
                await asyncio.sleep(0)


async def test_open_sessions_die_and_nobody_comes_back(host: EngineHost) -> None:
    async with tenants(host, limits=MANY) as [tenant]:
        held = await host.login(tenant)
        for statement in ("CREATE TABLE kept (n INT)", "BEGIN", "INSERT INTO kept VALUES (0)"):
            await held.run(statement)
        revoked = asyncio.Event()
        clients = [Client(revoked) for _ in range(6)]
        running = [asyncio.create_task(client.go_on(host, tenant)) for client in clients]
        await until(lambda: all(client.written for client in clients))
        await host.adapter.revoke_access(tenant)
        revoked.set()
        await until(lambda: all(client.refused_afterwards > 3 for client in clients) or any(t.done() for t in running))
        assert not any(task.done() for task in running), running
        await ended(*running)
        assert [client.written_afterwards for client in clients] == [0] * len(clients)
        with pytest.raises(ConnectionError):
            await held.run("COMMIT")
        await held.close()
        # The server shows a login that it refuses, too, until its connection is closed.
        await until(lambda: _nobody_there(host, tenant))

        await host.adapter.restore_access(tenant)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT COUNT(*) FROM kept WHERE n = 0") == [(0,)], "what wasn't committed is gone"
            [(kept,)] = await session.run("SELECT COUNT(*) FROM kept")
            written = sum(client.written for client in clients)
            # Each client may have lost the answer to one commit.
            assert written <= kept <= written + len(clients), "all that was committed is still there"


async def _nobody_there(host: EngineHost, tenant: Tenant) -> bool:
    return (await host.adapter.measure([tenant.name]))[tenant.name].connections == 0


async def test_a_statement_under_way_is_stopped(host: EngineHost) -> None:
    sleep = "SELECT pg_sleep(600)" if host.flavour == "postgres" else "SELECT SLEEP(600)"
    async with tenants(host) as [tenant]:
        session = await host.login(tenant)
        running = asyncio.create_task(session.run(sleep))
        await until(lambda: host.statements(tenant.name))
        await host.adapter.revoke_access(tenant)
        with pytest.raises((ConnectionError, RefusedError)):
            async with asyncio.timeout(LIMIT_SECONDS):
                await running
        await session.close()


async def test_credentials_are_refused_until_restored(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke_access(tenant)
        assert [row for row in await host.catalog() if row[:2] == ("grant", tenant.name)] == []
        with pytest.raises(LoginRefused):
            await host.adapter.verify_login(tenant)
        await host.adapter.restore_access(tenant)
        await host.adapter.verify_login(tenant)


async def test_other_tenants_keep_their_sessions(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as session:
        await host.adapter.revoke_access(tenant)
        await host.adapter.destroy(tenant)
        assert await session.run("SELECT 1") == [(1,)]


async def test_helper_roles_lose_their_sessions_too(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        before = await host.catalog()
        helper = Tenant(name=f"{tenant.name}_ro", password="Helper-passw0rd", marker=tenant.marker)
        await host.make_helper(tenant, helper)
        session = await host.login(helper, database=tenant.name)
        await host.adapter.revoke_access(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
        with pytest.raises(RefusedError):
            await host.login(helper, database=tenant.name)
        await host.adapter.restore_access(tenant)
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
            await host.adapter.revoke_access(tenant)
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
        await host.adapter.revoke_access(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
