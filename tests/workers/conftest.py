"""A Temporal server of these tests' own: no other worker takes their tasks."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.local.temporal import TemporalService
from tests.support.temporal_server import running_temporal


@pytest_asyncio.fixture(scope="package")
async def own_temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalService]:
    async with running_temporal(tmp_path_factory.mktemp("schedules")) as server:
        yield server
