"""Receivers, an API that may send to them, and workers that deliver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.local.temporal import TemporalService
from app.webhooks.egress import sender
from tests.servers import RunningServer
from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import Receiver, receiver
from tests.support.store import copy_of
from tests.support.waiting import LIMIT_SECONDS
from tests.support.webhooks import ALLOWED, Delivering, delivering

SCHEDULE = "0,0.3,0.3,0.3"
UNHURRIED_SECONDS = 30.0
"""For an attempt: longer than this machine stalls. What a killed worker had under way comes so much later again, within
the time that tests wait."""


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stalls takes longer to connect than the service allows."""
    monkeypatch.setattr(sender, "CONNECT_SECONDS", LIMIT_SECONDS)


@pytest_asyncio.fixture
async def receiving(tmp_path: Path) -> AsyncIterator[Receiver]:
    async with receiver(tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def sending(control_dsn: str, receiving: Receiver) -> AsyncIterator[LoneApi]:
    """The API in this process, which trusts the receiver and may reach this machine. Nothing delivers."""
    trust = {"webhook_allow_cidrs": (ALLOWED,), "webhook_ca_file": receiving.ca_file}
    async with lone_api(control_dsn, webhook_timeout_seconds=LIMIT_SECONDS, **trust) as api:
        await api.add_host()
        yield api


@pytest_asyncio.fixture(scope="package")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Receiver]:
    """The receiver of `running`."""
    async with receiver(tmp_path_factory.mktemp("receiver")) as made:
        yield made


@pytest_asyncio.fixture(scope="package")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    migrated_dsn: str,
    temporal_server: TemporalService,
    target: Receiver,
) -> AsyncIterator[Delivering]:
    """API and workers for all tests of this folder. Retries follow each other by 0.3 s."""
    dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    folder = tmp_path_factory.mktemp("delivering")
    settings = {"WEBHOOK_RETRY_SCHEDULE": SCHEDULE, "WEBHOOK_TIMEOUT_SECONDS": str(UNHURRIED_SECONDS)}
    async with delivering(folder, dsn, temporal_server, target, **settings) as made:
        await made.api.add_host()
        yield made
