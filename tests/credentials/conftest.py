"""Real engine hosts whose steps the test takes, at moments of its choice."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.credentials.stepped import Stepped
from tests.quotas.bench import bench
from tests.servers import RunningServer
from tests.support.copies import Copies


@pytest_asyncio.fixture(scope="module")
async def stepped(
    copies: Copies,
    postgres_server: RunningServer,
    mysql_server_if_any: RunningServer | None,
) -> AsyncIterator[Stepped]:
    """One for a module: each test makes databases of its own."""
    servers = [server for server in (postgres_server, mysql_server_if_any) if server is not None]
    async with copies.lent() as dsn, bench(dsn, *servers) as made:
        yield Stepped(made, await made.api.caller())


@pytest.fixture(params=["postgres", "mysql"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest_asyncio.fixture(scope="module")
async def plain(stepped: Stepped) -> dict[str, Any]:
    """A database that nothing happens to."""
    return await stepped.created("postgres")
