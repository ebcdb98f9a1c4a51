"""The administrator's connections: few, not for ever, and one statement at a time."""

import asyncio
import contextlib

import msgspec
import pymysql
import pytest

from app.core import ids
from app.engines.base import AdminAddress, EngineError
from app.engines.mysql import adapter as mysql_adapter
from app.engines.mysql import connections as mysql_connections
from app.engines.mysql.connection import MySQLConnection
from app.engines.postgres import connections as postgres_connections
from app.engines.registry import open_adapter
from tests.engines.harness import LIMITS, EngineHost, Session, as_root, new_tenant, tenants
from tests.support.proxy import copy
from tests.support.waiting import until

MYSQL = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


async def none_left(host: EngineHost) -> None:
    async def none() -> bool:
        return not await host.sessions(host.administrator.user)

    await until(none)


async def test_few_and_not_for_ever(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    await host.adapter.close()
    await none_left(host)
    for module in (mysql_connections, postgres_connections):
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    adapter = open_adapter(host.adapter.engine, host.administrator)
    seen = [0]
    while not max(seen):  # a look may come too late
        calls = [asyncio.create_task(adapter.measure([ids.engine_name()])) for _ in range(40)]
        while not all(call.done() for call in calls):
            seen.append(await host.sessions(host.administrator.user))
        await asyncio.gather(*calls)
    assert 0 < max(seen) <= mysql_connections.POOL_SIZE == postgres_connections.POOL_SIZE
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
    async with tenants(host) as [tenant]:
        root = await host.root()
        # The call that made the tenant didn't wait for its lock's release.
        await root.run(f"SELECT GET_LOCK(lock_name, 9) FROM headwater.tenants WHERE name = '{tenant.name}'")
        with monkeypatch.context() as patched:
            patched.setattr(mysql_adapter, "BUSY_SECONDS", 1)
            with pytest.raises(EngineError, match="another call"):
                await host.adapter.set_limits(tenant, LIMITS)
        await root.close()
        await host.adapter.set_limits(tenant, LIMITS)


@MYSQL
async def test_a_call_that_has_returned_holds_up_no_other(host: EngineHost) -> None:
    """It doesn't wait for the lock's release, which the server comes to all the same."""
    other = open_adapter(host.adapter.engine, host.administrator)
    try:
        async with tenants(host) as [tenant]:
            for adapter in (other, host.adapter) * 3:
                await adapter.set_limits(tenant, LIMITS)
            # Both have a connection with an answer that nobody has read. It is of no use any more.
            root = await host.root()
            user = host.administrator.user
            for (session,) in await root.run(f"SELECT id FROM information_schema.processlist WHERE user = '{user}'"):
                await root.run(f"KILL {session}")
            await root.close()
            await none_left(host)
            for adapter in (other, host.adapter) * 3:
                await adapter.set_limits(tenant, LIMITS)
    finally:
        await other.close()


@MYSQL
@pytest.mark.parametrize("again", [False, True])
async def test_a_tenant_that_is_removed_while_a_call_waits_for_it(
    host: EngineHost, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits until the test has removed the tenant: less than a statement's time, and longer than a machine stalls.
    monkeypatch.setattr(mysql_adapter, "BUSY_SECONDS", 50)
    async with tenants(host) as [tenant]:
        root, where = await host.root(), f"FROM headwater.tenants WHERE name = '{tenant.name}'"
        ((lock, _),) = await root.run(f"SELECT lock_name, GET_LOCK(lock_name, 9) {where}")
        removing = asyncio.create_task(host.adapter.destroy(tenant))
        waiting = f"SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK%{tenant.name}%'"

        async def waits() -> bool:
            return removing.done() or bool(await root.run(waiting))

        await until(waits)
        for statement in (f"DELETE {where}", f"DROP USER '{tenant.name}'@'%'", f"DROP DATABASE {tenant.name}"):
            await root.run(statement)
        if again:
            made = (tenant.name, tenant.marker, "another")
            await root.run(f"INSERT INTO headwater.tenants (name, marker, lock_name) VALUES {made}")
        await root.run(f"DO RELEASE_LOCK('{lock}')")
        with pytest.raises(EngineError, match="another call") if again else contextlib.nullcontext():
            await removing
        # Whoever kept it would keep it for ever: no row tells its name any more.
        await until(lambda: _is_free(root, lock))
        await root.close()


async def _is_free(root: Session, lock: str) -> bool:
    return await root.run(f"SELECT IS_FREE_LOCK('{lock}')") == [(1,)]


@MYSQL
async def test_lists_and_values_are_escaped(host: EngineHost) -> None:
    connection = await opened(host.administrator)
    assert await connection.run("SELECT %s IN %s, '%%'", ("it's", ["x", "it's"])) == [(1, "%")]
    assert await connection.run("SELECT '100%'") == [("100%",)]
    await connection.finish()


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_a_server_that_takes_long_to_say_goodbye_spoils_nothing(host: EngineHost) -> None:
    """A loaded one does."""
    ends: list[asyncio.StreamWriter] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host.administrator.host, host.administrator.port)
        ends.extend((writer, there_writer))
        # The end of the server's side never comes through.
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    address = msgspec.structs.replace(host.administrator, port=server.sockets[0].getsockname()[1])
    adapter, tenant = open_adapter(host.adapter.engine, address), new_tenant()
    await adapter.create(tenant, LIMITS)
    await host.adapter.verify_login(tenant)
    await adapter.destroy(tenant)
    await adapter.close()
    server.close()
    for end in ends:
        end.transport.abort()


@MYSQL
async def test_a_connection_that_is_lost_before_two_answers_is_one_error(host: EngineHost) -> None:
    async with mysql_connections.MySQLConnections(host.administrator).extra() as session:
        both = asyncio.create_task(session.run_in_turn(("DO SLEEP(60)", ()), ("SELECT 1", ())))
        asked = f"SELECT 1 FROM information_schema.processlist WHERE id = {session.thread_id()} AND info LIKE 'DO %'"
        await until(lambda: as_root(host, asked))
        session._writer.transport.abort()
        with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
            await both
