"""The administrator's connections: few, not for ever, and one statement at a time."""

import asyncio
import time

import pytest

from app.core import ids
from app.engines.base import AdminAddress, EngineError
from app.engines.mysql import adapter as mysql_adapter
from app.engines.mysql import connections as mysql_connections
from app.engines.mysql.connections import MySQLConnection
from app.engines.postgres import connections as postgres_connections
from app.engines.registry import open_adapter
from tests.engines.harness import LIMITS, EngineHost, as_root, tenants

MYSQL = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


async def sessions(host: EngineHost) -> int:
    table, column = "information_schema.processlist", "user"
    if host.flavour == "postgres":
        table, column = "pg_stat_activity", "usename"
    [(count,)] = await as_root(host, f"SELECT COUNT(*) FROM {table} WHERE {column} = '{host.administrator.user}'")
    return int(count)


async def none_left(host: EngineHost) -> None:
    deadline = time.monotonic() + 10
    while await sessions(host):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_few_and_not_for_ever(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    await host.adapter.close()
    for module in (mysql_connections, postgres_connections):
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    adapter = open_adapter(host.adapter.engine, host.administrator)
    calls = [asyncio.create_task(adapter.measure([ids.engine_name()])) for _ in range(40)]
    while not all(call.done() for call in calls):
        assert await sessions(host) <= mysql_connections.POOL_SIZE == postgres_connections.POOL_SIZE
    await asyncio.gather(*calls)
    assert await sessions(host) > 0
    await none_left(host)
    await adapter.measure([ids.engine_name()])
    await adapter.close()
    await none_left(host)


async def opened(address: AdminAddress) -> MySQLConnection:
    return await MySQLConnection.open(
        address.tls, host=address.host, port=address.port, user=address.user, password=address.password
    )


@MYSQL
async def test_one_statement_an_answer(host: EngineHost) -> None:
    connection = await opened(host.administrator)
    with pytest.raises(Exception, match="syntax"):
        await connection.run("SELECT 1; SELECT 2")
    assert await connection.run("SELECT 1") == [(1,)]
    await connection.finish()


@MYSQL
async def test_one_call_at_a_time_works_on_a_tenant(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql_adapter, "BUSY_SECONDS", 1)
    async with tenants(host) as [tenant]:
        root = await host.root()
        await root.run(f"SELECT GET_LOCK(lock_name, 0) FROM headwater.tenants WHERE name = '{tenant.name}'")
        with pytest.raises(EngineError, match="another call"):
            await host.adapter.set_limits(tenant, LIMITS)
        await root.close()
        await host.adapter.set_limits(tenant, LIMITS)


@MYSQL
async def test_lists_and_values_are_escaped(host: EngineHost) -> None:
    connection = await opened(host.administrator)
    assert await connection.run("SELECT %s IN %s, '%%'", ("it's", ["x", "it's"])) == [(1, "%")]
    assert await connection.run("SELECT '100%'") == [("100%",)]
    await connection.finish()
