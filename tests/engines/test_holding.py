"""Tenants that get fewer connections than their limit for a while, and what a server counts of everybody's."""

import asyncio

import pytest

from app.engines.base import Access, EngineError, HeldLimits, Login
from app.engines.querying import QueryLimits
from tests.engines.harness import EngineHost, RefusedError, Session, new_tenant, tenants
from tests.support.waiting import LIMIT_SECONDS, until


async def _close(sessions: list[Session]) -> None:
    for session in sessions:
        await session.close()


async def test_one_that_is_held_gets_no_more(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:

        async def has(count: int) -> bool:
            return (await host.adapter.session_counts()).by_name.get(tenant.name, 0) == count

        sessions = [await host.login(tenant) for _ in range(3)]
        await until(lambda: has(3))
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=2))
        assert await host.adapter.held() == [tenant.name]
        with pytest.raises(RefusedError):
            await host.login(tenant)
        for session in sessions:
            assert await session.run("SELECT 1"), "an open session goes on"
        sessions.append(await host.login(other))
        # A login that was refused is listed, too, until its connection is closed.
        await until(lambda: has(3))
        assert await host.adapter.end_surplus(tenant.name, 1) == 2
        await until(lambda: has(1))
        sessions.append(await host.login(tenant))
        with pytest.raises(RefusedError):
            await host.login(tenant)
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=None))
        assert await host.adapter.held() == []
        sessions += [await host.login(tenant) for _ in range(3)]
        with pytest.raises(RefusedError):
            await host.login(tenant)
        await _close(sessions)


async def test_its_users_are_held_with_it(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = Login(name=f"{tenant.name}_u1", password="Secret-4711", access=Access.READ_WRITE, connections=2)
        await host.adapter.put_user(tenant, user)
        as_user = new_tenant(name=user.name, password=user.password, marker=tenant.marker)
        users = {user.name: 2}
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users=users, at_most=2))
        assert await host.adapter.held() == [tenant.name]
        sessions = [await host.login(as_user, database=tenant.name)]
        with pytest.raises(RefusedError):
            await host.login(as_user, database=tenant.name)
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users=users, at_most=None))
        assert await host.adapter.held() == []
        sessions += [await host.login(as_user, database=tenant.name)]
        sessions += [await host.login(tenant) for _ in range(3)]
        with pytest.raises(RefusedError):
            await host.login(tenant)
        await _close(sessions)


async def test_a_revoked_one_stays_closed_and_a_destroyed_one_is_nobody(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=1))
        await host.adapter.revoke_access(tenant)
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=None))
        with pytest.raises(RefusedError):
            await host.login(tenant)
    await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=1))
    assert await host.adapter.held() == [], "it is gone"


async def test_the_services_own_sessions_are_no_surplus(host: EngineHost) -> None:
    """A question about the tenant's database costs it no session that it may keep."""
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, "Reader-passw0rd")
        sessions = [await host.login(tenant) for _ in range(2)]
        async with host.adapter.reading(tenant, "Reader-passw0rd", QueryLimits(seconds=20, rows=10)) as question:
            assert (await host.adapter.session_counts()).by_name[tenant.name] == 3
            assert await host.adapter.end_surplus(tenant.name, 2) == 0
            await question.read("SELECT 1 AS one")
        for session in sessions:
            assert await session.run("SELECT 1")
        await _close(sessions)


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_one_that_locks_its_own_account_delays_nobody(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        session = await host.login(tenant)
        await session.run("BEGIN")
        await session.run("ALTER ROLE CURRENT_USER PASSWORD 'Secret-4712'")
        async with asyncio.timeout(LIMIT_SECONDS):
            with pytest.raises(EngineError):
                await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=2))
        await session.close()
        await host.adapter.hold(tenant.name, HeldLimits(total=5, users={}, at_most=2))
        assert await host.adapter.held() == [tenant.name]
