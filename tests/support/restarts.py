"""A plugin: processes that a test leaves stopped are started again, and fail that test, not the ones after it."""

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

import pytest
import pytest_asyncio

SHARED = ("service", "pooling", "running")
"""The fixtures whose processes several tests share."""


@runtime_checkable
class Restartable(Protocol):
    async def start_stopped(self) -> list[str]:
        """Starts what should be running and isn't; returns the names of that."""
        ...


_shared = pytest.StashKey[list[Restartable]]()


@pytest.fixture(autouse=True)
def _restarts_afterwards(request: pytest.FixtureRequest) -> None:
    """Comes before the test's own fixtures, so what it asks for ends after them."""
    fixtures = (request.getfixturevalue(name) for name in SHARED if name in request.fixturenames)
    if services := [one for one in fixtures if isinstance(one, Restartable)]:
        request.node.stash[_shared] = services
        request.getfixturevalue("restarts")


@pytest_asyncio.fixture
async def restarts(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    yield
    if names := [name for service in request.node.stash[_shared] for name in await service.start_stopped()]:
        pytest.fail(f"it left these stopped, which were started again: {', '.join(names)}", pytrace=False)
