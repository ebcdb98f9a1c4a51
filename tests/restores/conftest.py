"""The running service's own records and hosts."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from activities.engine import EngineActivitiesOnHosts
from app.backups.final import FinalBackups
from app.contracts.base import Engine
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.local.mysql_source import MysqlSource
from app.outbox.provisionings import RunningProvisionings
from app.quotas.plans import DEFAULT_PLANS
from tests.backups.support import TERMS
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


@pytest.fixture
def steps(service: RunningService, adapters: Adapters) -> EngineActivitiesOnHosts:
    """Of a worker with final backups. The service's own worker takes them."""
    running = RunningProvisionings()
    return EngineActivitiesOnHosts(DEFAULT_PLANS, service.box, adapters, HostSlots(), running, FinalBackups(TERMS))
