"""A database that its server copies at once. What a host shares can't be made here, so the hosts say that they do."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from app.engines.base import Access, EngineAdapter, Tenant
from app.engines.postgres.dumps import copying
from tests.engines.accounts import user_of
from tests.engines.harness import LIMITS, EngineHost, Session, new_tenant, session_of, tenants
from tests.engines.test_dumped_rights import check, protect
from tests.engines.test_dumps import tables
from tests.engines.test_dumps_postgres import cut_often, make_everything
from tests.servers import RunningServer
from tests.support.logs import logged_by
from tests.support.shared_blocks import said_to_share
from tests.support.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")


@pytest_asyncio.fixture
async def sharing(host: EngineHost, engine_server: RunningServer) -> AsyncIterator[EngineHost]:
    async with said_to_share(engine_server):
        yield host


async def test_the_copy_is_equal_and_its_source_goes_on(sharing: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine with other work copies for longer than logins are to wait.
    monkeypatch.setattr(copying, "COPY_HELD_SECONDS", LIMIT_SECONDS)
    before = await sharing.catalog()
    async with tenants(sharing, 2) as [source, target]:
        await make_everything(sharing, source)
        await sharing.adapter.revoke_access(target)
        async with session_of(sharing, source) as session:
            copied = await sharing.adapter.copy_database(source, target)
            assert copied.done
            assert copied.held_seconds > 0
            with pytest.raises(ConnectionError):
                await session.run("SELECT 1")
        told = await sharing.adapter.contents(source)
        assert await sharing.adapter.contents(target) == told
        await sharing.adapter.restore_access(target)
        await sharing.adapter.verify_login(target)
        await sharing.adapter.verify_login(source)
        async with session_of(sharing, target) as session:
            named = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relname = 'secured'"
            assert await session.run(named) == [(target.name,)]
            await session.run("DROP TABLE secured CASCADE")
        assert await sharing.adapter.contents(source) == told
        await sharing.adapter.destroy(source)
        await sharing.adapter.log_in(target)
    assert await sharing.catalog() == before


async def test_a_copy_that_takes_too_long_is_given_up(sharing: EngineHost) -> None:
    """The server itself does so: its lock, which logins need, would be held as long as this one."""
    async with tenants(sharing, 2) as [source, target]:
        root = await sharing.root()
        try:
            await root.run("BEGIN")
            await root.run(f"COMMENT ON DATABASE {source.name} IS 'locked'")
            with logged_by(copying) as lines:
                copied = await sharing.adapter.copy_database(source, target)
            assert not copied.done
            assert copied.held_seconds > 0
            assert ["statement timeout" in line["reason"] for line in lines] == [True]
            await sharing.adapter.verify_login(source)
            await root.run("ROLLBACK")
        finally:
            await root.close()
        assert tables(await sharing.adapter.contents(target)) == {}
        await sharing.adapter.verify_login(target)


async def hold_by_reader(host: EngineHost, tenant: Tenant, session: Session) -> None:
    readers = [user_of(tenant, Access.READ_ONLY, number) for number in (1, 2)]
    for one in readers:
        await host.adapter.put_user(tenant, one)
    await protect(session, *readers)
    await check(host, tenant, *readers)


async def hold_by_freeze(host: EngineHost, tenant: Tenant, session: Session) -> None:
    await host.adapter.freeze(tenant)


async def hold_by_revocation(host: EngineHost, tenant: Tenant, session: Session) -> None:
    await host.adapter.revoke_access(tenant)


@pytest.mark.parametrize("hold", [hold_by_reader, hold_by_freeze, hold_by_revocation])
async def test_what_only_a_dump_copies(
    sharing: EngineHost, hold: Callable[[EngineHost, Tenant, Session], Awaitable[None]]
) -> None:
    async with tenants(sharing, 2) as [source, target]:
        async with session_of(sharing, source) as session:
            await hold(sharing, source, session)
        async with session_of(sharing, target) as held:
            copied = await sharing.adapter.copy_database(source, target)
            assert (copied.done, copied.held_seconds) == (False, 0)
            await held.run("CREATE TABLE mine (n int)")


async def test_a_dump_under_way_goes_on(sharing: EngineHost) -> None:
    async with tenants(sharing, 2) as [source, target], sharing.adapter.dumping(source) as dump:
        assert not (await sharing.adapter.copy_database(source, target)).done
        assert [chunk async for chunk in dump.chunks()]
        assert tables(await dump.contents()) == {}


async def test_a_host_that_copies_block_by_block_holds_nobody_up(host: EngineHost) -> None:
    if await host.adapter.copies_at_once():
        pytest.skip("this file system shares blocks")
    async with tenants(host, 2) as [source, target], session_of(host, source) as session:
        assert not (await host.adapter.copy_database(source, target)).done
        await session.run("SELECT 1")


async def test_whatever_dies_the_source_is_open_and_the_target_is_its_own(sharing: EngineHost) -> None:
    before = await sharing.catalog()
    async with tenants(sharing) as [source]:
        async with session_of(sharing, source) as session:
            await session.run("CREATE TABLE pets (n int)")
        targets: list[Tenant] = []

        async def next_target() -> None:
            targets.append(new_tenant())
            await sharing.adapter.create(targets[-1], LIMITS)

        async def copy(adapter: EngineAdapter) -> None:
            await adapter.copy_database(source, targets[-1])

        await next_target()
        async for _ in cut_often(sharing, copy, 9):
            await sharing.adapter.verify_login(source)
            await sharing.adapter.clear(targets[-1])
            assert tables(await sharing.adapter.contents(targets[-1])) == {}
            await sharing.adapter.verify_login(targets[-1])
            await sharing.adapter.destroy(targets[-1])
            await next_target()
        await sharing.adapter.destroy(targets[-1])
    assert await sharing.catalog() == before
