"""Our own database may be several servers, of which one takes writes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import asyncpg
import pytest
import pytest_asyncio

from app.local.ports import LOOPBACK
from app.store.servers import connect_to_store
from tests.servers import RunningServer
from tests.support.store import execute_at

_NAME = "several_servers"
_CLOSED = f"{LOOPBACK}:1"


@contextmanager
def silent() -> Iterator[str]:
    """Where the system takes connections and nobody says anything, as on a machine that is frozen."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        yield f"{LOOPBACK}:{listening.getsockname()[1]}"


@pytest_asyncio.fixture(scope="module")
async def pair(control_server: RunningServer, postgres_server: RunningServer) -> AsyncIterator[dict[str, str]]:
    """Two servers with the same database and login, of which the second takes no writes."""
    for server in (control_server, postgres_server):
        await execute_at(server.admin_dsn, f"CREATE ROLE {_NAME} LOGIN PASSWORD 'secret'", f"CREATE DATABASE {_NAME}")
    await execute_at(postgres_server.admin_dsn, f"ALTER DATABASE {_NAME} SET default_transaction_read_only = on")
    yield {"writes": f"{LOOPBACK}:{control_server.port}", "reads": f"{LOOPBACK}:{postgres_server.port}"}
    for server in (control_server, postgres_server):
        await execute_at(server.admin_dsn, f"DROP DATABASE {_NAME} WITH (FORCE)", f"DROP ROLE {_NAME}")


def _dsn(*servers: str) -> str:
    return f"postgresql://{_NAME}:secret@{','.join(servers)}/{_NAME}?target_session_attrs=read-write"


@pytest.mark.parametrize(
    "order", [("writes", "reads"), ("reads", "writes"), ("closed", "reads", "writes"), ("writes",)], ids="-".join
)
async def test_the_one_that_takes_writes_is_found(pair: dict[str, str], order: tuple[str, ...]) -> None:
    servers = {**pair, "closed": _CLOSED}
    connection = await connect_to_store(_dsn(*(servers[name] for name in order)), timeout=20)
    try:
        assert await connection.fetchval("SHOW transaction_read_only") == "off"
    finally:
        await connection.close()


async def test_one_that_says_nothing_takes_none_of_the_time(pair: dict[str, str]) -> None:
    with silent() as nothing:
        async with asyncio.timeout(60):
            connection = await connect_to_store(_dsn(nothing, pair["reads"], pair["writes"]), timeout=3600)
        await connection.close()


async def test_where_none_takes_writes_it_says_so(pair: dict[str, str]) -> None:
    with pytest.raises((OSError, asyncpg.InternalClientError)):
        await connect_to_store(_dsn(pair["reads"], _CLOSED), timeout=20)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
async def test_a_connection_to_a_machine_that_is_gone_breaks(pair: dict[str, str]) -> None:
    connection = await connect_to_store(_dsn(pair["writes"]), timeout=20)
    try:
        opened = connection._transport.get_extra_info("socket")
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
    finally:
        await connection.close()


async def test_the_server_notices_a_client_that_is_gone(pair: dict[str, str]) -> None:
    """By itself it would keep the session, with its locks, for two hours."""
    settings = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
    connection = await connect_to_store(_dsn(pair["writes"]), timeout=20, server_settings={"timezone": "UTC"})
    try:
        seconds, every, times = [int(await connection.fetchval("SELECT current_setting($1)", one)) for one in settings]
        assert seconds + every * times <= 30
        assert await connection.fetchval("SHOW timezone") == "UTC"
    finally:
        await connection.close()


async def test_statements_stay_prepared_however_long_ago_they_ran(
    pair: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    later = loop.call_later
    connection = await connect_to_store(_dsn(pair["writes"]), timeout=20)
    monkeypatch.setattr(loop, "call_later", lambda delay, *args, **named: later(min(delay, 0.001), *args, **named))
    await connection.fetchval("SELECT 4711")
    passed = asyncio.Event()
    loop.call_later(300, passed.set)
    await passed.wait()
    await connection.fetchval("SELECT 1")
    prepared = await connection.fetch("SELECT statement FROM pg_prepared_statements")
    assert "SELECT 4711" in {row["statement"] for row in prepared}
    await connection.close()
