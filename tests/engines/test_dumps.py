"""A dump holds everything of one moment, and what is loaded from it is equal."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from app.engines.base import EngineAdapter, EngineError, LoginRefused, SessionLimits, Tenant
from app.engines.dumping import Content, ContentKind, DumpFormat, DumpPurpose
from tests.engines.harness import EngineHost, as_root, kind_of, session_of, tenants
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _dumps(host: EngineHost) -> None:
    if type(host.adapter).dumping is EngineAdapter.dumping:
        pytest.skip("no dumps of this engine yet")


async def dumped(host: EngineHost, tenant: Tenant) -> tuple[list[bytes], DumpFormat, list[Content]]:
    async with host.adapter.dumping(tenant) as dump:
        chunks = [chunk async for chunk in dump.chunks()]
        return chunks, dump.format, await dump.contents()


async def streamed(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def tables(contents: Sequence[Content]) -> dict[str, int]:
    """Their rows."""
    return {one.name: one.rows for one in contents if one.kind is ContentKind.TABLE}


async def test_a_loaded_dump_is_equal(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY, age int)")
            await session.run("INSERT INTO pets VALUES ('Rex', 3), ('', NULL)")
        chunks, form, told = await dumped(host, source)
        assert list(tables(told).values()) == [2]
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        async with session_of(host, target) as session:
            assert await session.run("SELECT name, age FROM pets ORDER BY name") == [("", None), ("Rex", 3)]


def limits_of_tools() -> list[str]:
    """Of the dump tools that this process has started."""
    children = [
        Path("/proc") / child
        for thread in Path("/proc/self/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return [(child / "limits").read_text() for child in children if "dump" in (child / "cmdline").read_text()]


async def test_a_dump_tool_has_a_bound_on_its_memory(host: EngineHost) -> None:
    """It keeps lists of what a tenant has made, and a row of any length."""
    texts = {"postgres": "SELECT repeat(md5(n::text), 30000) FROM generate_series(1, 5) n"}.get(
        kind_of(host), "SELECT REPEAT('x', 3000000) AS t"
    )
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run(f"CREATE TABLE texts AS {texts}")
        async with host.adapter.dumping(tenant):
            [limits] = limits_of_tools()
        [line] = [line for line in limits.splitlines() if line.startswith("Max data size")]
        assert line.split()[3:5] == [str(2**30)] * 2


async def test_a_cleared_database_is_empty_and_takes_a_dump_again(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
        chunks, form, told = await dumped(host, tenant)
        for _ in range(2):
            await host.adapter.clear(tenant)
            assert tables(await host.adapter.contents(tenant)) == {}
        await host.adapter.load(tenant, form, streamed(chunks))
        assert await host.adapter.contents(tenant) == told
        await host.adapter.verify_login(tenant)


async def test_a_revoked_tenants_database_is_dumped_and_stays_closed(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
        await host.adapter.revoke_access(tenant)
        revoked = await host.catalog()
        chunks, form, told = await dumped(host, tenant)
        assert await host.catalog() == revoked
        await host.adapter.clear(tenant)
        await host.adapter.load(tenant, form, streamed(chunks))
        assert await host.adapter.contents(tenant) == told
        with pytest.raises(LoginRefused):
            await host.adapter.log_in(tenant)
        await host.adapter.restore_access(tenant)
        await host.adapter.verify_login(tenant)
    assert await host.catalog() == before


async def test_a_database_is_replaced_by_another(host: EngineHost) -> None:
    if not host.adapter.replaces_whole:
        pytest.skip("this engine replaces data by clearing and loading")
    before = await host.catalog()
    async with tenants(host, 2) as [tenant, scratch]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
            await session.run("INSERT INTO pets VALUES ('Rex')")
        chunks, form, told = await dumped(host, tenant)
        async with session_of(host, tenant) as session:
            await session.run("DELETE FROM pets")
            await session.run("CREATE TABLE later (n int)")
        await host.adapter.load(scratch, form, streamed(chunks))
        with pytest.raises(EngineError):
            await host.adapter.replace(tenant, scratch)
        await host.adapter.revoke_access(tenant)
        for _ in range(2):
            await host.adapter.replace(tenant, scratch)
        assert await host.adapter.contents(tenant) == told
        assert len(tables(await host.adapter.contents(scratch))) == 2
        await host.adapter.destroy(scratch)
        await host.adapter.restore_access(tenant)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT name FROM pets") == [("Rex",)]
            await session.run("DROP TABLE pets")
        await host.adapter.verify_login(tenant)
    assert await host.catalog() == before


async def test_what_a_dead_process_left_is_found_and_removed(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        left = Tenant(name=f"{tenant.name}_dump", password="Left0verPassw0rd", marker="")
        await host.make_helper(tenant, left)
        await _out_of_time(host, left.name)
        both = [tenant.name, other.name]
        assert await host.adapter.left_dumps([other.name]) == []
        assert await host.adapter.left_dumps(both) == [left.name]
        assert await host.adapter.left_dumps(both, remove=True) == [left.name]
        assert await host.adapter.left_dumps(both) == []
        assert await host.adapter.end_dumps(both) == 0


@pytest.mark.parametrize("revoked", [False, True])
async def test_a_backup_and_a_clone_at_once_do_not_know_each_other(host: EngineHost, revoked: bool) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
            await session.run("INSERT INTO pets VALUES ('Rex')")
        if revoked:
            await host.adapter.revoke_access(tenant)
        async with host.adapter.dumping(tenant) as backup:
            async with host.adapter.dumping(tenant, purpose=DumpPurpose.CLONE) as clone:
                assert [chunk async for chunk in clone.chunks()]
                cloned = await clone.contents()
            assert [chunk async for chunk in backup.chunks()]
            assert await backup.contents() == cloned
        assert await host.adapter.end_dumps([tenant.name]) == 0
        if revoked:
            with pytest.raises(LoginRefused):
                await host.adapter.verify_login(tenant)


async def test_a_backup_is_no_long_transaction_of_its_tenant(host: EngineHost) -> None:
    """It has a time limit of its own. A clone has none, and waits for a load that runs what its tenant wrote."""
    limits = SessionLimits(transaction_seconds=0)
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE loaded (t text)")
            # So much that no dump is done before somebody reads it.
            await session.run(host.load_statement(16))
        async with host.adapter.dumping(tenant) as backup:
            assert await host.adapter.end_excessive_sessions([tenant.name], limits) == []
            async with host.adapter.dumping(tenant, purpose=DumpPurpose.CLONE):
                # InnoDB tells of a transaction a moment after it began.
                ended = await until(lambda: host.adapter.end_excessive_sessions([tenant.name], limits))
                assert {one.reason for one in ended} == {"long_transaction"}
            assert [chunk async for chunk in backup.chunks()]
            assert len(tables(await backup.contents())) == 1


async def test_a_dump_under_way_is_left_by_nobody(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
        async with host.adapter.dumping(tenant) as dump:
            chunks = aiter(dump.chunks())
            assert await anext(chunks)
            await _out_of_time(host, f"{tenant.name}_dump")
            assert await host.adapter.left_dumps([tenant.name], remove=True) == []
            async for _ in chunks:
                pass
            assert tables(await dump.contents())


async def _out_of_time(host: EngineHost, account: str) -> None:
    """As the account is when it can log in no more, where it can only for a while."""
    if kind_of(host) == "postgres":
        await as_root(host, f"ALTER ROLE {account} VALID UNTIL '2026-01-01'")
