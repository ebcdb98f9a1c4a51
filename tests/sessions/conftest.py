"""One API for a whole module, and people who use it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.servers import RunningServer
from tests.support.in_process import LoneApi, lone_api
from tests.support.people import Person, sign_in
from tests.support.store import copy_of


@pytest_asyncio.fixture(scope="module")
async def shared(control_server: RunningServer, migrated_dsn: str) -> AsyncIterator[LoneApi]:
    """The same as `lone`, made once a module."""
    async with lone_api(await copy_of(migrated_dsn, control_server.admin_dsn)) as api:
        yield api


@pytest_asyncio.fixture
async def person(shared: LoneApi) -> Person:
    """Somebody new who is signed in."""
    return await sign_in(shared.http, shared.control_dsn, await shared.caller())
