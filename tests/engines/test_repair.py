"""What tenants take from themselves is given back, and what was taken from them is not."""

import pytest

from app.engines.base import EngineError, FoundTenant, Tenant
from tests.engines.harness import EngineHost, RefusedError, as_root, new_tenant, session_of, tenants

WRECK = {
    "postgres": "DROP OWNED BY current_user",
    "mysql": "DROP DATABASE {name}",
    "mariadb": "DROP DATABASE {name}",
}


async def _found(host: EngineHost, tenant: Tenant) -> FoundTenant:
    return next(one for one in await host.adapter.list_tenants() if one.name == tenant.name)


async def test_a_tenant_that_wrecked_its_place_can_work_again(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        whole = await _found(host, tenant)
        assert whole.admits
        assert whole.has_schema
        async with session_of(host, tenant) as session:
            await session.run(WRECK[host.flavour].format(name=tenant.name))
        wrecked = await _found(host, tenant)
        assert not wrecked.has_schema
        with pytest.raises(EngineError):
            await host.adapter.verify_login(tenant)
        for _ in range(2):
            await host.adapter.repair(tenant)
        assert await _found(host, tenant) == whole
        await host.adapter.verify_login(tenant)


async def test_an_account_without_its_rights_gets_them_back(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        whole = await _found(host, tenant)
        revoke = {"postgres": 'REVOKE ALL ON DATABASE "{name}" FROM "{name}"'}.get(
            host.flavour, "REVOKE ALL PRIVILEGES ON `{name}`.* FROM '{name}'@'%'"
        )
        await as_root(host, revoke.format(name=tenant.name))
        found = await _found(host, tenant)
        assert not found.may_connect
        assert not found.may_create
        await host.adapter.repair(tenant)
        assert await _found(host, tenant) == whole
        await host.adapter.verify_login(tenant)


async def test_repairing_what_is_whole_changes_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE kept (n integer)")
        await session.run("INSERT INTO kept VALUES (7)")
        before = await host.catalog()
        await host.adapter.repair(tenant)
        assert await host.catalog() == before
        assert await session.run("SELECT n FROM kept") == [(7,)]


async def test_what_was_revoked_stays_closed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke_access(tenant)
        assert not (await _found(host, tenant)).admits
        await host.adapter.repair(tenant)
        assert not (await _found(host, tenant)).admits
        with pytest.raises(RefusedError):
            await host.login(tenant)


async def test_a_tenant_that_is_not_there_is_not_made(host: EngineHost) -> None:
    before = await host.catalog()
    with pytest.raises(EngineError):
        await host.adapter.repair(new_tenant())
    assert await host.catalog() == before
