"""A Temporal server of these tests' own: no other worker takes their tasks."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.client import Client

from app.contracts import retries
from app.core.temporal import connect
from tests.support.temporal_server import running_temporal
from workers.search_attributes import register_search_attributes


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a crowded machine a step may take longer than ours, and would be made again."""
    for limit in ("HEARTBEAT", "LOCAL_STEP"):
        monkeypatch.setattr(retries, limit, timedelta(minutes=2))


@pytest_asyncio.fixture(scope="package")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with running_temporal(tmp_path_factory.mktemp("workflows")) as server:
        client = await connect(server.address, "default")
        await register_search_attributes(client)
        yield client
