"""Servers that the whole run shares, each started when a test first asks for it."""

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog
from hypothesis import HealthCheck, settings

from app.engines.mysql import connection as mysql_connection
from app.engines.postgres import connections as postgres_connections
from app.local.mysql_source import MysqlSource
from app.local.temporal import TemporalService
from app.store import session
from tests import servers
from tests.engines.patience import be_patient
from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.forks import close_fork_server
from tests.support.in_process import LoneApi, lone_api
from tests.support.lone_pool import LonePool, lone_pool
from tests.support.service import RunningService, SharedServers, running_service
from tests.support.store import migrated_original, owner_dsn, store
from tests.support.temporal_server import running_temporal
from tests.support.waiting import LIMIT_SECONDS

pytest_plugins = ["tests.support.plugins"]

# By default a traceback is drawn with its source in colours and all variables: half a second of processor time for one
# that passes through the layers of a request.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    # Where our processes write theirs: what the command prints for scripts is alone on standard output.
    logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
)

# An example that takes long says something about the machine, not about what is tested.
settings.register_profile("headwater", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headwater")

# On a crowded machine a login may take longer than the service waits for one.
session.CONNECT_SECONDS = LIMIT_SECONDS

HOST_CONNECT_SECONDS = mysql_connection.CONNECT_SECONDS, postgres_connections.CONNECT_SECONDS
"""As the service has them."""
be_patient()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of longer forms: what they do at random follows from the seed."""
    parser.addoption("--kills", type=int, default=1000, help="how many processes tests/kills kills")
    parser.addoption("--faults", type=int, default=40, help="how many machines fail in tests/nodes")
    parser.addoption("--seed", type=int, default=1, help="what fails when, in tests/kills and tests/nodes")


def pytest_sessionfinish() -> None:
    close_fork_server()


@pytest_asyncio.fixture(scope="session")
async def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """An engine host: PostgreSQL, and its superuser."""
    async with servers.postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def control_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """The PostgreSQL of our own state. Without autovacuum, which would look at hundreds of copies again and again."""
    async with servers.postgres(tmp_path_factory.mktemp("control"), autovacuum="off") as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """An engine host: the MySQL or MariaDB of this machine, and its full administrator."""
    async with servers.mysql(tmp_path_factory.mktemp("mysql"), servers.machine_mysqld()) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def oracle_mysql_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """An engine host: Oracle's MySQL, where HEADWATER_MYSQLD names one."""
    async with servers.mysql(tmp_path_factory.mktemp("oracle-mysql"), await servers.oracle_mysqld()) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def temporal_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalService]:
    """A Temporal server; `.address` is where it listens."""
    async with running_temporal(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_server_if_any(request: pytest.FixtureRequest) -> RunningServer | None:
    """The same as `mysql_server`, or None on a machine without one."""
    if MysqlSource.of_machine().find() is None:
        return None
    server: RunningServer = request.getfixturevalue("mysql_server")
    return server


@pytest.fixture(scope="session")
def shared_servers(
    control_server: RunningServer,
    temporal_server: TemporalService,
    postgres_server: RunningServer,
    mysql_server_if_any: RunningServer | None,
) -> SharedServers:
    """To run a service of some tests' own on them."""
    return SharedServers(control_server, temporal_server, postgres_server, mysql_server_if_any)


@pytest_asyncio.fixture(scope="session")
async def service(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    temporal_server: TemporalService,
    postgres_server: RunningServer,
    mysql_server_if_any: RunningServer | None,
) -> AsyncIterator[RunningService]:
    """The whole service: API and worker processes over real servers. One that a test kills it starts again."""
    folder = tmp_path_factory.mktemp("service")
    async with running_service(folder, control_server, temporal_server, postgres_server, mysql_server_if_any) as made:
        yield made


@pytest_asyncio.fixture
async def caller(service: RunningService) -> Caller:
    """A user of their own, of a `pro` team, with every scope."""
    return await service.caller()


@pytest_asyncio.fixture(scope="session")
async def migrated_dsn(control_server: RunningServer) -> str:
    """A database with our tables and nothing in them, to make copies of. Leave it unconnected."""
    return await migrated_original(control_server.admin_dsn)


@pytest.fixture(scope="session")
def copies(control_server: RunningServer, migrated_dsn: str) -> Copies:
    """Lends databases with our tables and nothing in them."""
    return Copies(migrated_dsn, control_server.admin_dsn)


@pytest_asyncio.fixture
async def control_dsn(copies: Copies) -> AsyncIterator[str]:
    """A fresh database with our tables, as the service logs in to it."""
    async with copies.lent() as dsn:
        yield dsn


@pytest.fixture
def control_admin_dsn(control_server: RunningServer, control_dsn: str) -> str:
    """The same database for the owner of its tables."""
    return owner_dsn(control_dsn, control_server.admin_dsn)


@pytest_asyncio.fixture
async def lone(control_dsn: str) -> AsyncIterator[LoneApi]:
    """The API in this process, on a fresh database, with one PostgreSQL host that nobody answers on."""
    async with lone_api(control_dsn) as api:
        await api.add_host()
        yield api


@pytest_asyncio.fixture
async def own_store(control_dsn: str) -> AsyncIterator[None]:
    """This process's store, connected to a fresh database."""
    async with store(control_dsn):
        yield


@pytest_asyncio.fixture
async def pool(control_dsn: str) -> AsyncIterator[LonePool]:
    """The API in this process, on a fresh database, with the means to fill a pool of rows."""
    async with lone_pool(control_dsn) as made:
        yield made
