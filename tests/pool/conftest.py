"""The service with a warm pool, in a database and a namespace of its own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.client import Caller
from tests.support.service import RunningService, SharedServers
from tests.support.store import store

POOL_SIZE = 4


@pytest_asyncio.fixture(scope="package")
async def pooling(
    tmp_path_factory: pytest.TempPathFactory,
    shared_servers: SharedServers,
) -> AsyncIterator[RunningService]:
    """API and worker. The refill runs by schedule every second, so that no test waits long for a hint that was
    lost. An answer waits for limits as long as it takes to apply them on a crowded machine."""
    folder = tmp_path_factory.mktemp("pooled")
    async with shared_servers.service(
        folder,
        POOL_SIZE=str(POOL_SIZE),
        REFILL_INTERVAL_SECONDS="1",
        LIMITS_TIMEOUT_SECONDS="60",
    ) as service:
        yield service


@pytest_asyncio.fixture
async def pooled(pooling: RunningService) -> AsyncIterator[RunningService]:
    """The same, and this process connected to its database for the test."""
    async with store(pooling.control_dsn):
        yield pooling


@pytest_asyncio.fixture
async def caller(pooled: RunningService) -> Caller:
    """A user of their own, of a `pro` team, with every scope."""
    return await pooled.caller()
