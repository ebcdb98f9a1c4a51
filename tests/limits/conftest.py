"""One API for a whole module, on a database of its own, and further API processes beside it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.servers import RunningServer
from tests.support.in_process import LoneApi, lone_api
from tests.support.store import copy_of


@pytest_asyncio.fixture(scope="module")
async def shared(control_server: RunningServer, migrated_dsn: str) -> AsyncIterator[LoneApi]:
    """Behind a proxy at 127.0.0.0/8, as this process is to it."""
    dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    async with lone_api(dsn, trusted_proxies=("127.0.0.0/8",)) as api:
        await api.add_host()
        yield api
