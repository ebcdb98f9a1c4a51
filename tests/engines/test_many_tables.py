"""A tenant with more tables than the server has locks: whatever is done to all of them is done in parts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.engines.dumping import DumpRefused
from app.engines.mysql import removal
from app.engines.mysql.connection import MySQLConnection
from app.engines.postgres.readers import reader_name
from app.engines.querying import QueryLimits
from tests import servers
from tests.engines.harness import EngineHost, as_root, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost

MANY = 2000
MAKE = """
DO $$ BEGIN FOR i IN 1..100 LOOP
    EXECUTE format('CREATE TABLE many%s_%s (n int REFERENCES kept)', {batch}, i);
END LOOP; END $$
"""
READER = "a-reader's-password"


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[EngineHost]:
    """A host that has some hundreds of locks."""
    async with servers.postgres(tmp_path, max_locks_per_transaction="10", max_connections="40") as server:
        host = PostgresHost(server)
        await host.prepare()
        yield host
        await host.adapter.close()


async def test_a_tenant_with_more_tables_than_there_are_locks(small: EngineHost) -> None:
    [(capacity,)] = await as_root(
        small,
        "SELECT current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int",
    )
    assert capacity * 2 < MANY
    async with tenants(small) as [tenant]:
        async with session_of(small, tenant) as session:
            await session.run("CREATE TABLE kept (n int PRIMARY KEY)")
            for batch in range(MANY // 100):
                await session.run(MAKE.format(batch=batch))
        before = await small.rights(tenant)
        await small.adapter.freeze(tenant)
        async with session_of(small, tenant) as session:
            for table in ("kept", "many0_1", "many19_100"):
                assert await refusal(session, f"INSERT INTO {table} VALUES (NULL)") == "42501"
            assert await refusal(session, "DELETE FROM many7_7") is None
        with pytest.raises(DumpRefused, match=r"has more than [0-9]+ tables"):
            async with small.adapter.dumping(tenant):
                pass
        await small.adapter.make_reader(tenant, READER)
        limits = QueryLimits(seconds=10, rows=5)
        async with small.adapter.reading(tenant, READER, limits) as reading:
            assert (await reading.read("SELECT count(*) FROM many19_100")).rows
        await small.adapter.thaw(tenant)
        assert {right for right in await small.rights(tenant) if right[3] != reader_name(tenant.name)} == before


@pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")
async def test_a_destruction_drops_some_tables_at_a_time(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for all would take as long as a tenant likes, and leave as much to do when it is broken off."""
    said: list[str] = []
    run = MySQLConnection.run

    async def listening(self: MySQLConnection, statement: str, values: Any = None) -> Any:
        said.append(statement)
        return await run(self, statement, values)

    monkeypatch.setattr(removal, "TABLES_AT_ONCE", 2)
    monkeypatch.setattr(MySQLConnection, "run", listening)
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE `a``parent` (n INT PRIMARY KEY)")
            for name in ("b", "c", "d"):
                await session.run(f"CREATE TABLE {name} (n INT, FOREIGN KEY (n) REFERENCES `a``parent` (n))")
            await session.run("CREATE VIEW v AS SELECT * FROM b")
        said.clear()
        await host.adapter.destroy(tenant)
        dropped = [statement.count("`.`") for statement in said if statement.startswith("DROP TABLE")]
        assert dropped == [2, 2]
        assert not await as_root(host, f"SHOW DATABASES LIKE '{tenant.name}'")
