"""A tenant that names another's roles in its own database doesn't keep them on the server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.engines.base import Access, EngineAdapter, Login, Tenant
from tests.engines.harness import as_root, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer

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


async def admits(adapter: EngineAdapter, tenant: Tenant) -> bool:
    (found,) = [one for one in await adapter.list_tenants() if one.name == tenant.name]
    return found.admits
