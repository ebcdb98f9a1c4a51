"""A frozen tenant reads, deletes, truncates and drops, and nothing it does lets it write; thawed, it is as before."""

import asyncio

import pytest

from app.contracts.base import Engine
from app.engines.base import EngineError, EngineLimits, Tenant
from tests.engines.harness import LIMITS, EngineHost, RefusedError, Session, new_tenant, refusal, session_of, tenants
from tests.support.waiting import until

FILLED = (
    "CREATE TABLE kept (n INT PRIMARY KEY, t VARCHAR(100))",
    "INSERT INTO kept VALUES (1, 'a'), (2, 'b'), (3, 'c')",
)
CHILD = (
    "CREATE TABLE child (n INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES kept (n) ON DELETE SET NULL)",
    "CREATE TABLE grandchild (n INT PRIMARY KEY, parent INT, "
    "FOREIGN KEY (parent) REFERENCES child (n) ON DELETE CASCADE)",
    "INSERT INTO child VALUES (10, 1), (11, 2)",
    "INSERT INTO grandchild VALUES (100, 10)",
)
WRITES = (
    "INSERT INTO kept VALUES (9, 'x')",
    "INSERT INTO kept SELECT n + 50, t FROM kept",
    "UPDATE kept SET t = 'longer'",
    "CREATE TABLE more (n INT)",
    "CREATE TABLE more AS SELECT * FROM kept",
    "CREATE TEMPORARY TABLE more (n INT)",
    "CREATE INDEX more ON kept (t)",
    "CREATE VIEW more AS SELECT * FROM kept",
    "ALTER TABLE kept ADD COLUMN more INT DEFAULT 7",
)


async def _run(session: Session, *statements: str) -> None:
    for statement in statements:
        await session.run(statement)


async def _filled(host: EngineHost, tenant: Tenant) -> None:
    async with session_of(host, tenant) as session:
        await _run(session, *FILLED, *CHILD)


async def test_writing_and_creating_end_while_reading_and_freeing_go_on(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        await host.adapter.freeze(tenant)
        async with session_of(host, tenant) as session:
            for statement in WRITES:
                assert await refusal(session, statement) is not None, statement
            assert await session.run("SELECT COUNT(*) FROM kept") == [(3,)]
            await _run(session, "DELETE FROM kept WHERE n = 1", "DELETE FROM child WHERE n = 10", "TRUNCATE grandchild")
            assert await session.run("SELECT n, parent FROM child") == [(11, 2)]
            assert await session.run("SELECT COUNT(*) FROM kept") == [(2,)]
            await _run(session, "DROP TABLE grandchild", "DROP TABLE child", "DROP TABLE kept")


async def test_thawed_it_has_the_rights_that_it_had(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        before = await host.rights(tenant)
        for _ in range(2):
            await host.adapter.freeze(tenant)
        assert await host.rights(tenant) != before
        for _ in range(2):
            await host.adapter.thaw(tenant)
        assert await host.rights(tenant) == before
        await host.adapter.verify_login(tenant)
        async with session_of(host, tenant) as session:
            await _run(session, *(statement for statement in WRITES if "more" not in statement))


async def test_what_never_was_frozen_is_not_harmed_by_a_thaw(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        before = await host.rights(tenant)
        await host.adapter.thaw(tenant)
        assert await host.rights(tenant) == before


async def test_open_sessions_and_statements_under_way_are_no_way_round(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        writing = await host.login(tenant)
        await _run(writing, "BEGIN", "INSERT INTO kept VALUES (20, 'open')")
        sleep = "pg_sleep(600) IS NULL" if host.flavour == "postgres" else "SLEEP(600)"
        slow = await host.login(tenant)
        inserting = asyncio.create_task(slow.run(f"INSERT INTO kept SELECT n + 30, t FROM kept WHERE {sleep} OR n > 0"))
        await until(lambda: host.statements(tenant.name))
        await host.adapter.freeze(tenant)
        with pytest.raises((ConnectionError, RefusedError)):
            await inserting
        for statement in ("INSERT INTO kept VALUES (21, 'late')", "COMMIT"):
            with pytest.raises((ConnectionError, RefusedError)):
                await writing.run(statement)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT COUNT(*) FROM kept") == [(3,)]
        for session in (writing, slow):
            await session.close()


async def test_a_repeated_freeze_ends_no_session(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.freeze(tenant)
        async with session_of(host, tenant) as session:
            await host.adapter.freeze(tenant)
            assert await session.run("SELECT 1") == [(1,)]


async def test_a_repeated_freeze_takes_what_was_granted_since(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        before = await host.rights(tenant)
        await host.adapter.freeze(tenant)
        frozen = await host.rights(tenant)
        name = f'"{tenant.name}"' if host.flavour == "postgres" else f"'{tenant.name}'@'%'"
        table = "kept" if host.flavour == "postgres" else f"{tenant.name}.*"
        await host.as_root_in(tenant, f"GRANT INSERT ON {table} TO {name}")
        assert await host.rights(tenant) != frozen
        await host.adapter.freeze(tenant)
        assert await host.rights(tenant) == frozen
        await host.adapter.thaw(tenant)
        assert await host.rights(tenant) == before


async def test_a_pause_keeps_it_frozen_or_not_as_is_asked(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        before = await host.rights(tenant)
        await host.adapter.freeze(tenant)
        frozen = await host.rights(tenant)
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant, frozen=True)
        assert await host.rights(tenant) == frozen
        async with session_of(host, tenant) as session:
            for statement in WRITES:
                assert await refusal(session, statement) is not None, statement
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant)
        assert await host.rights(tenant) == before
        await host.adapter.verify_login(tenant)
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant, frozen=True)
        async with session_of(host, tenant) as session:
            assert await refusal(session, "INSERT INTO kept VALUES (9, 'x')") is not None
            assert await refusal(session, "CREATE TABLE more (n INT)") is not None


async def test_neither_a_repair_nor_a_late_create_thaws(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        await host.adapter.freeze(tenant)
        frozen = await host.rights(tenant)
        await host.adapter.repair(tenant)
        assert await host.rights(tenant) == frozen
        await host.adapter.create(tenant, LIMITS)
        assert await host.rights(tenant) == frozen


async def test_a_new_limit_does_not_thaw(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        await host.adapter.freeze(tenant)
        frozen = await host.rights(tenant)
        await host.adapter.set_limits(tenant, EngineLimits(connections=7))
        assert await host.rights(tenant) == frozen


async def test_a_frozen_tenant_is_destroyed_without_a_trace(host: EngineHost) -> None:
    await host.adapter.list_tenants()
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        await _filled(host, tenant)
        await host.adapter.freeze(tenant)
    assert await host.catalog() == before


async def test_space_that_deletions_left_is_given_back(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE loaded (t text)")
            await session.run(host.load_statement(16))
        full = (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes
        await host.adapter.freeze(tenant)
        async with session_of(host, tenant) as session:
            await session.run("DELETE FROM loaded")

        async def is_smaller() -> bool:
            # The engines count what is dead, and purge it, a moment after the commit.
            await host.adapter.reclaim(tenant)
            return (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes < full - 12 * 2**20

        await until(is_smaller)
        async with session_of(host, tenant) as session:
            assert await refusal(session, "INSERT INTO loaded VALUES ('x')") is not None


async def test_space_is_given_back_while_anothers_transaction_is_open(host: EngineHost) -> None:
    if host.adapter.engine is not Engine.POSTGRES:
        pytest.skip("InnoDB purges nothing that any open snapshot could show")
    async with tenants(host, 2) as [tenant, other]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE loaded AS SELECT n, repeat('x', 999) AS t FROM generate_series(1, 8000) n")
        async with session_of(host, other) as holding:
            # With a change, or no snapshot of others counts it.
            for statement in ("BEGIN", "CREATE TABLE held (n int)"):
                await holding.run(statement)
            async with session_of(host, tenant) as session:
                # What stays is everywhere, so that the file can't be cut off behind it.
                await session.run("DELETE FROM loaded WHERE n % 20 <> 0")
            await host.adapter.reclaim(tenant)
            [(size,)] = await host.as_root_in(tenant, "SELECT pg_table_size('loaded')")
    assert size < 2**20


async def test_a_full_table_is_not_rebuilt_in_vain(host: EngineHost) -> None:
    if host.adapter.engine is not Engine.POSTGRES:
        pytest.skip("InnoDB counts its empty room itself")
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            # Half of such a row aligns what follows.
            pairs = ", ".join(f"n % 2 = 0 AS a{column}, n AS b{column}" for column in range(6))
            await session.run(f"CREATE TABLE padded AS SELECT {pairs} FROM generate_series(1::bigint, 30000) AS n")
        async with session_of(host, tenant) as session:
            await session.run("VACUUM ANALYZE padded")
        file = "SELECT pg_relation_filenode('padded'), pg_table_size('padded') > 2 * 2 ^ 20"
        [(made, large)] = await host.as_root_in(tenant, file)
        assert large
        await host.adapter.reclaim(tenant)
        assert await host.as_root_in(tenant, file) == [(made, True)]


async def test_nobody_is_frozen_who_is_not_there(host: EngineHost) -> None:
    nobody = new_tenant()
    with pytest.raises(EngineError):
        await host.adapter.freeze(nobody)
    with pytest.raises(EngineError):
        await host.adapter.thaw(nobody)


async def test_sessions_are_told_apart(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        assert await host.adapter.sessions([tenant.name, other.name]) == {}
        first = await host.login(tenant)
        seen = await host.adapter.sessions([tenant.name, other.name])
        assert list(seen) == [tenant.name]
        second = await host.login(tenant)
        both = (await host.adapter.sessions([tenant.name]))[tenant.name]
        assert len(both) == 2
        assert seen[tenant.name] < both
        for session in (first, second):
            await session.close()
        assert await host.adapter.sessions([]) == {}
