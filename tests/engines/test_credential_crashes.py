"""A process that dies anywhere in a change of credentials or users: what worked before still works, and a repetition
ends as the first call would have."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from app.engines.base import EngineAdapter, EngineLimits, Login, Tenant
from tests.engines.accounts import accepted, logging_in_as, login_of, next_login, user_of
from tests.engines.harness import EngineHost, RefusedError, as_root, session_of, tenants
from tests.engines.ways import cut_off


async def all_accepted(host: EngineHost, tenant: Tenant, *logins: Login) -> list[bool]:
    return [await accepted(host, tenant, login) for login in logins]


async def cut_everywhere(
    host: EngineHost, call: Callable[[EngineAdapter], Awaitable[None]], *, step: int = 1
) -> AsyncIterator[None]:
    """The call again and again, each time cut off `step` messages later, until it is made in full. Each time is
    followed by whatever the caller does. PostgreSQL is sent more messages, for statements that are one transaction."""
    last, step = 0, 4 if host.flavour == "postgres" else step
    while await cut_off(host, last := last + step, call):
        yield
    assert last > 10, "so much is sent at least"
    yield


async def test_the_old_password_works_while_an_overlap_begins(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        told = [login_of(tenant), next_login(host, tenant)]

        def present() -> Tenant:
            return logging_in_as(tenant, told[-2])

        async def add(adapter: EngineAdapter) -> None:
            await adapter.add_credential(present(), told[-1])

        async for _ in cut_everywhere(host, add):
            assert await all_accepted(host, tenant, told[-2]) == [True]
            await add(host.adapter)
            assert await all_accepted(host, tenant, *told[-2:]) == [True, True]
            await host.adapter.retire_credential(present(), told[-1], told[-2], end_sessions=False)
            told.append(next_login(host, tenant, len(told)))
        assert await all_accepted(host, tenant, *told[:-2]) == [False] * (len(told) - 2)


async def test_the_new_password_works_while_an_overlap_ends(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        told = [login_of(tenant)]

        def present() -> Tenant:
            return logging_in_as(tenant, told[-2])

        async def begin() -> None:
            told.append(next_login(host, tenant, len(told)))
            await host.adapter.add_credential(present(), told[-1])

        async def retire(adapter: EngineAdapter) -> None:
            await adapter.retire_credential(present(), told[-1], told[-2], end_sessions=False)

        await begin()
        async for _ in cut_everywhere(host, retire):
            assert await all_accepted(host, tenant, told[-1]) == [True]
            await retire(host.adapter)
            assert await all_accepted(host, tenant, *told[-2:]) == [False, True]
            await begin()


async def test_a_user_is_made_and_the_limit_holds(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=60)) as [tenant]:
        users = [user_of(tenant)]
        async for _ in cut_everywhere(host, lambda adapter: adapter.put_user(tenant, users[-1])):
            if host.flavour != "postgres":  # which limits the database
                limits = await as_root(host, "SELECT user, max_user_connections FROM mysql.user")
                mine = [limit for name, limit in limits if name.startswith(tenant.name)]
                assert sum(mine) <= 60
                assert min(mine) > 0
            await host.adapter.put_user(tenant, users[-1])
            assert await all_accepted(host, tenant, users[-1]) == [True]
            users.append(user_of(tenant, number=len(users) + 1))
        assert await all_accepted(host, tenant, *users[:-1]) == [True] * (len(users) - 1)


@pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")
async def test_a_removed_users_trigger_never_stands_in_the_way(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant], session_of(host, tenant) as owner:
        await owner.run("CREATE TABLE kept (n INT)")
        await owner.run("CREATE TABLE copied (n INT)")
        user = user_of(tenant)

        async def define() -> None:
            await host.adapter.put_user(tenant, user)
            account = Tenant(name=user.name, password=user.password, marker=tenant.marker)
            session = await host.login(account, database=tenant.name)
            await session.run("DROP TRIGGER IF EXISTS copying")
            await session.run(
                "CREATE TRIGGER copying AFTER INSERT ON kept FOR EACH ROW INSERT INTO copied VALUES (NEW.n)"
            )
            await session.close()

        await define()
        async for _ in cut_everywhere(host, lambda adapter: adapter.remove_user(tenant, user.name), step=2):
            await owner.run("INSERT INTO kept VALUES (1)")
            await host.adapter.remove_user(tenant, user.name)
            assert await all_accepted(host, tenant, user) == [False]
            await owner.run("INSERT INTO kept VALUES (1)")
            await define()
        [(kept,)] = await owner.run("SELECT COUNT(*) FROM kept")
        assert await owner.run("SELECT COUNT(*) FROM copied") == [(kept,)]
        with pytest.raises(RefusedError):
            await host.login(Tenant(name=user.name, password="", marker=""), database=tenant.name)
    assert await host.catalog() == before
