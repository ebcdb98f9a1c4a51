"""One API for a whole module, on a database of its own, and further API processes beside it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api


@pytest_asyncio.fixture(scope="module")
async def shared(copies: Copies) -> AsyncIterator[LoneApi]:
    """Behind a proxy at 127.0.0.0/8, as this process is to it."""
    async with copies.lent() as dsn, lone_api(dsn, trusted_proxies=("127.0.0.0/8",)) as api:
        await api.add_host()
        yield api
