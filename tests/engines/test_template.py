"""The template of tenant databases on PostgreSQL: what a tenant's first session takes, and what nobody else can."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.engines.harness import LIMITS, as_root, new_tenant, refusal, session_of, tenants
from tests.engines.postgres_host import PROVISIONER, PostgresHost
from tests.servers import RunningServer

TAKE = "SELECT pg_catalog.headwater_take_public()"
OWNER = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'"
DENIED, NO_SUCH_SCHEMA = "42501", "3F000"


@pytest_asyncio.fixture
async def postgres_host(postgres_server: RunningServer) -> AsyncIterator[PostgresHost]:
    host = PostgresHost(postgres_server)
    await host.prepare()
    yield host
    await host.adapter.close()


async def test_a_create_opens_one_session_in_the_new_database(postgres_host: PostgresHost) -> None:
    tenant = new_tenant()
    await postgres_host.adapter.create_verified(tenant, LIMITS)
    try:
        async with session_of(postgres_host, tenant) as session:
            assert await session.run(OWNER) == [(tenant.name,)]
        # The administrator was never inside: its statement would be in the log.
        assert f'ALTER SCHEMA public OWNER TO "{tenant.name}"' not in postgres_host.log.read_text()
    finally:
        await postgres_host.adapter.destroy(tenant)


async def test_a_database_without_the_function_or_the_schema_gets_it_from_the_administrator(
    postgres_host: PostgresHost,
) -> None:
    for fault in ("DROP SCHEMA public", None):
        tenant = new_tenant()
        await postgres_host.adapter.create(tenant, LIMITS)
        try:
            if fault:
                async with session_of(postgres_host, tenant) as session:
                    await session.run(fault)
                    assert await refusal(session, TAKE) == NO_SUCH_SCHEMA
            else:
                await postgres_host.as_root_in(tenant, "ALTER EXTENSION plpgsql DROP FUNCTION headwater_take_public()")
                await postgres_host.as_root_in(tenant, "DROP FUNCTION pg_catalog.headwater_take_public()")
                await postgres_host.as_root_in(tenant, f'ALTER SCHEMA public OWNER TO "{PROVISIONER}"')
            await postgres_host.adapter.create_verified(tenant, LIMITS)
            async with session_of(postgres_host, tenant) as session:
                assert await session.run(OWNER) == [(tenant.name,)]
        finally:
            await postgres_host.adapter.destroy(tenant)


async def test_only_the_tenant_takes_its_schema(postgres_host: PostgresHost) -> None:
    async with tenants(postgres_host) as [tenant]:
        helper = new_tenant(name=f"{tenant.name}_helper")
        await postgres_host.make_helper(tenant, helper)
        helping = await postgres_host.login(helper, database=tenant.name)
        try:
            assert await refusal(helping, TAKE) == DENIED
        finally:
            await helping.close()


async def test_the_template_has_fewer_files_than_a_fresh_database(postgres_host: PostgresHost) -> None:
    async with tenants(postgres_host) as [tenant]:
        count = "SELECT count(*) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = {}))"
        fresh = (await postgres_host.as_root_in(tenant, count.format("'template0'")))[0][0]
        ours = (await postgres_host.as_root_in(tenant, count.format("current_database()")))[0][0]
    assert ours < 0.85 * fresh


async def test_a_template_of_an_earlier_version_is_found_and_replaced(postgres_host: PostgresHost) -> None:
    comment = "COMMENT ON DATABASE headwater_template IS 'headwater guard 2'"
    await as_root(postgres_host, comment)
    told = [line for line in (await postgres_host.adapter.inspect_host()).shortcomings if "earlier version" in line]
    assert len(told) == 1
    await postgres_host.prepare()
    assert not any("earlier version" in line for line in (await postgres_host.adapter.inspect_host()).shortcomings)
