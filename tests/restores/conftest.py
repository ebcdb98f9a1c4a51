"""The running service's own records and hosts."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.hosts.adapters import Adapters
from app.local.mysql_source import MysqlSource
from tests.support.service import RunningService
from tests.support.store import store

ENGINES = [
    Engine.POSTGRES,
    pytest.param(
        Engine.MYSQL,
        marks=pytest.mark.skipif(MysqlSource.of_machine().find() is None, reason="this machine has no MySQL server"),
    ),
]


@pytest_asyncio.fixture
async def adapters(service: RunningService) -> AsyncIterator[Adapters]:
    """With this process connected to the service's own database."""
    made = Adapters(service.box)
    async with store(service.control_dsn):
        try:
            yield made
        finally:
            await made.close()
