"""A tenant that names another's roles in its own database doesn't keep them on the server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from app.engines.base import Access, EngineAdapter, Login, Tenant, TenantFull
from tests.engines.accounts import login_of, next_login, session_as
from tests.engines.harness import LIMITS, as_root, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer
from tests.support.waiting import until

NAMING = (
    "CREATE TABLE named (id int)",
    "CREATE POLICY named ON named TO {role} USING (true)",
    "GRANT SELECT ON named TO {role} WITH GRANT OPTION",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}",
)


@pytest_asyncio.fixture
async def host(postgres_server: RunningServer) -> AsyncIterator[PostgresHost]:
    made = PostgresHost(postgres_server)
    await made.prepare()
    yield made
    await made.adapter.close()


async def name_in(host: PostgresHost, tenant: Tenant, role: str) -> None:
    async with session_of(host, tenant) as session:
        for statement in NAMING:
            await session.run(statement.format(role=role))


async def roles_like(host: PostgresHost, name: str) -> list[str]:
    return [row[0] for row in await as_root(host, f"SELECT rolname FROM pg_roles WHERE rolname LIKE '{name}%'")]


@pytest.mark.parametrize("closed", [False, True])
async def test_a_tenant_is_destroyed_that_others_name(host: PostgresHost, closed: bool) -> None:
    async with tenants(host, 2) as (hostile, other):
        await name_in(host, hostile, other.name)
        if closed:
            await host.adapter.revoke_access(hostile)
        await host.adapter.destroy(other)
        assert await roles_like(host, other.name) == []
        assert await admits(host.adapter, hostile) is not closed


async def test_tenants_that_name_each_other_are_destroyed(host: PostgresHost) -> None:
    async with tenants(host, 2) as (one, other):
        await name_in(host, one, other.name)
        await name_in(host, other, one.name)
        await host.adapter.destroy(one)
        await host.adapter.destroy(other)
        assert await roles_like(host, one.name) == await roles_like(host, other.name) == []


async def test_a_user_is_removed_whom_others_name(host: PostgresHost) -> None:
    async with tenants(host, 2) as (hostile, other):
        user = Login(name=f"{other.name}_u1", password="a password of its own", access=Access.READ_ONLY, connections=1)
        await host.adapter.put_user(other, user)
        await name_in(host, hostile, user.name)
        await host.adapter.remove_user(other, user.name)
        assert await roles_like(host, other.name) == [other.name]
        await host.adapter.log_in(other)


@asynccontextmanager
async def holding_all_connections(host: PostgresHost, tenant: Tenant) -> AsyncIterator[None]:
    """With the two logins of an overlap, where nothing counts them together: they have the service's places too."""
    for statement in (
        "ALTER EXTENSION plpgsql DROP FUNCTION headwater_share_limit(boolean)",
        "DROP FUNCTION pg_catalog.headwater_share_limit(boolean)",
    ):
        await host.as_root_in(tenant, statement)
    new = next_login(host, tenant)
    await host.adapter.add_credential(tenant, new)
    await host.adapter.log_in_as(tenant, new)
    async with AsyncExitStack() as stack:
        for login in (login_of(tenant), new) * LIMITS.connections:
            await stack.enter_async_context(session_as(host, tenant, login))
        yield


async def test_one_that_holds_all_connections_keeps_no_role_of_others(host: PostgresHost) -> None:
    async with tenants(host, 2) as (hostile, other):

        async def has_its_limit() -> bool:
            return await host.sessions(hostile.name) == LIMITS.connections

        await name_in(host, hostile, other.name)
        async with holding_all_connections(host, hostile):
            await host.adapter.destroy(other)
            assert await roles_like(host, other.name) == []
            await until(has_its_limit)


async def test_a_full_database_is_no_fault_of_its_host(host: PostgresHost) -> None:
    async with tenants(host) as [tenant], holding_all_connections(host, tenant):
        with pytest.raises(TenantFull):
            await host.adapter.repair(tenant)


async def admits(adapter: EngineAdapter, tenant: Tenant) -> bool:
    (found,) = [one for one in await adapter.list_tenants() if one.name == tenant.name]
    return found.admits
