"""A Temporal server of these tests' own: no other worker takes their tasks."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client

from app.core.temporal import connect
from tests.support.temporal_server import running_temporal
from workers.search_attributes import register_search_attributes


@pytest_asyncio.fixture(scope="package")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with running_temporal(tmp_path_factory.mktemp("workflows")) as server:
        client = await connect(server.address, "default")
        await register_search_attributes(client)
        yield client
