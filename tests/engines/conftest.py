"""The hosts that every test of the suite runs on."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

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
    made = PostgresHost(engine_server) if engine_server.flavour == "postgres" else MySQLHost(engine_server)
    await made.prepare()
    yield made
    await made.adapter.close()
