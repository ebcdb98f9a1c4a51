"""A service that sends its traces to a collector, and its webhooks to the same server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.core.tracing.sampling import sampler_of
from app.core.tracing.spans import Tracer
from tests.servers import RunningServer
from tests.support.collector import Collector
from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import receiver
from tests.support.service import RunningService, SharedServers
from tests.support.store import copy_of
from tests.tracing.kept import Kept


@pytest_asyncio.fixture(scope="package")
async def collector(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Collector]:
    async with receiver(tmp_path_factory.mktemp("collector")) as server:
        yield Collector(server)


@pytest_asyncio.fixture(scope="package")
async def traced_service(
    tmp_path_factory: pytest.TempPathFactory,
    shared_servers: SharedServers,
    collector: Collector,
) -> AsyncIterator[RunningService]:
    async with shared_servers.service(
        tmp_path_factory.mktemp("traced"),
        others=collector.environ,
        WEBHOOK_ALLOW_CIDRS="127.0.0.0/8",
        WEBHOOK_TIMEOUT_SECONDS="120",
        WEBHOOK_CA_FILE=str(collector.receiver.ca_file),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def kept() -> Kept:
    return Kept()


@pytest_asyncio.fixture(scope="module")
async def traced_api(control_server: RunningServer, migrated_dsn: str, kept: Kept) -> AsyncIterator[LoneApi]:
    """In this process, as its spans are."""
    control_dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    async with lone_api(control_dsn, tracer=Tracer(kept, sampler_of("parentbased_always_on", 1))) as api:
        await api.add_host()
        yield api
