"""The hosts that every test of the suite runs on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests import servers
from tests.engines.harness import EngineHost
from tests.engines.mysql_host import MySQLHost
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer

SERVERS = {"postgres": "postgres_server", "mysql": "mysql_server", "oracle": "oracle_mysql_server"}


@pytest.fixture(scope="session", params=SERVERS)
def engine_server(request: pytest.FixtureRequest) -> RunningServer:
    server: RunningServer = request.getfixturevalue(SERVERS[request.param])
    return server


@pytest_asyncio.fixture(scope="session")
async def host(engine_server: RunningServer) -> AsyncIterator[EngineHost]:
    """Each engine in turn, through an administrator that is no superuser."""
    async with _prepared(engine_server) as made:
        yield made


@pytest_asyncio.fixture(params=SERVERS)
async def lone_host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EngineHost]:
    """The same on a server of its own. The others have sessions of services that tests share."""
    async with AsyncExitStack() as stack:
        if request.param == "postgres":
            server = await stack.enter_async_context(servers.postgres(tmp_path))
        else:
            program = servers.machine_mysqld() if request.param == "mysql" else await servers.oracle_mysqld()
            server = await stack.enter_async_context(servers.mysql(tmp_path, program))
        yield await stack.enter_async_context(_prepared(server))


@asynccontextmanager
async def _prepared(server: RunningServer) -> AsyncIterator[EngineHost]:
    made = PostgresHost(server) if server.flavour == "postgres" else MySQLHost(server)
    await made.prepare()
    try:
        yield made
    finally:
        await made.adapter.close()
