"""What a question's read costs on PostgreSQL, and a new password on MySQL: few round trips, each of which a client
waits for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec
import pytest

from app.core import ids
from app.engines.base import Access, EngineLimits, Login
from app.engines.querying import QueryLimits
from app.engines.registry import open_adapter
from app.local.ports import LOOPBACK
from tests.engines.harness import EngineHost, new_tenant, session_of, tenants
from tests.limits.round_trips import counting
from tests.support.ports import free_port

LIMITS = QueryLimits(seconds=20, rows=10)
PASSWORD = "Reader-passw0rd"


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_a_read_after_the_login(host: EngineHost) -> None:
    address = host.administrator
    async with tenants(host) as [tenant], counting(f"postgresql://{address.host}:{address.port}") as (way, counter):
        await host.adapter.make_reader(tenant, PASSWORD)
        adapter = open_adapter(host.adapter.engine, msgspec.structs.replace(address, port=urlsplit(way).port))
        async with adapter.reading(tenant, PASSWORD, LIMITS) as session:
            known = await session.describe()
        async with adapter.reading(tenant, PASSWORD, LIMITS) as session:
            counter.count = 0
            assert await session.describe(known) is known
            assert counter.count == 1, "whether the schema is still the same"
            await session.read("SELECT 1 AS n")
            assert counter.count == 1 + 3, "the transaction, the columns, the rows"
        await adapter.close()


@pytest.mark.parametrize("engine_server", ["mysql"], indirect=True, scope="session")
async def test_a_new_password_beside_the_old_one(host: EngineHost) -> None:
    async with tenants(host) as [tenant], turns(host.administrator.port) as (port, said):
        adapter = open_adapter(host.adapter.engine, msgspec.structs.replace(host.administrator, port=port))
        new = Login(name=tenant.name, password=ids.engine_password(), access=Access.READ_WRITE, connections=None)
        await adapter.add_credential(tenant, new)
        said.clear()
        await adapter.add_credential(tenant, new)
        # The answer to the release of the lock is waited for by whoever uses the connection next.
        assert len(said) == 2, "the lock and the row; the account, and the lock's release"
        await adapter.log_in_as(tenant, new)
        await adapter.close()


@pytest.mark.parametrize("engine_server", ["mysql"], indirect=True, scope="session")
async def test_a_new_database(host: EngineHost) -> None:
    async with turns(host.administrator.port) as (port, said):
        adapter = open_adapter(host.adapter.engine, msgspec.structs.replace(host.administrator, port=port))
        tenant, other = new_tenant(), new_tenant()
        try:
            await adapter.create(other, EngineLimits(connections=5))
            # On the same connection, and answered: nothing of the first create is under way.
            await adapter.open_sessions(other)
            said.clear()
            await adapter.create(tenant, EngineLimits(connections=5))
            assert len(said) == 5, "what is there; the row; the lock; what is there now; all three statements"
            await adapter.verify_login(tenant)
        finally:
            for one in (tenant, other):
                await host.adapter.destroy(one)
            await adapter.close()


@pytest.mark.parametrize("engine_server", ["mysql"], indirect=True, scope="session")
async def test_a_table_that_a_crash_left_is_removed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE headwater_check (n INTEGER PRIMARY KEY)")
            await session.run("INSERT INTO headwater_check VALUES (42)")
        await host.adapter.verify_login(tenant)
        async with session_of(host, tenant) as session:
            assert await session.run("SHOW TABLES") == []


@asynccontextmanager
async def turns(target: int) -> AsyncIterator[tuple[int, list[int]]]:
    """A port that leads to another, and the lengths of what clients say on it between two answers."""
    said: list[int] = []
    open_ways: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: list[bool], client: bool) -> None:
        while data := await reader.read(65_536):
            if client and heard[0]:
                said.append(len(data))
            heard[0] = not client
            writer.write(data)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, target)
        heard = [True]
        ways = {
            asyncio.create_task(copy(reader, there_writer, heard, True)),
            asyncio.create_task(copy(there_reader, writer, heard, False)),
        }
        open_ways.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for end in (writer, there_writer):
            end.transport.abort()

    port = free_port()
    server = await asyncio.start_server(accept, LOOPBACK, port)
    try:
        yield port, said
    finally:
        server.close()
        for way in open_ways:
            way.cancel()
        await asyncio.gather(*open_ways, return_exceptions=True)
        # What was accepted ends with its ways.
        await asyncio.sleep(0)
