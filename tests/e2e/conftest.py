"""One stack for all tests that leave it as they found it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.local.stack_process import FORKED
from tests.support.stack import LiveStack, live_stack

GRACE_SECONDS = 3


@pytest_asyncio.fixture(scope="package")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveStack]:
    """A stack whose deleted databases are destroyed after `GRACE_SECONDS`. An answer waits for limits as long as it
    takes to apply them on a crowded machine."""
    home = tmp_path_factory.mktemp("e2e") / "home"
    settings = {"DELETION_GRACE_SECONDS": str(GRACE_SECONDS), "LIMITS_TIMEOUT_SECONDS": "60"}
    async with live_stack(home, FORKED, **settings) as running:
        yield running
