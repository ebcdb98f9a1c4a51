"""One browser and one service for all tests of the console; each test has a browser context of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.console.browser import Console, Visit, chromium
from tests.console.world import World, new_world
from tests.sessions.provider import running_provider
from tests.support.service import RunningService


@pytest_asyncio.fixture(scope="session")
async def console(service: RunningService) -> AsyncIterator[Console]:
    async with chromium() as browser:
        yield Console(service, browser)


@pytest_asyncio.fixture
async def visit(console: Console) -> AsyncIterator[Visit]:
    """Somebody who is signed in and owns a team. The test fails if a page of theirs writes to the console, fails, or
    asks another host."""
    async with console.person() as made:
        yield made


@pytest_asyncio.fixture
async def page(visit: Visit) -> Page:
    """Their page, which has opened nothing yet."""
    return visit.page


@pytest_asyncio.fixture(scope="session")
async def world(service: RunningService) -> World:
    """What tests of every page look at, and don't change."""
    return await new_world(service)


@pytest.fixture
def provider() -> Iterator[str]:
    """The issuer of a provider of OpenID Connect."""
    with running_provider() as issuer:
        yield issuer
