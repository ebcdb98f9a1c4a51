"""One API for a whole module, for tests that only ask and leave nothing that another could meet."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.people import Person, sign_in
from tests.support.store import copy_of


@pytest_asyncio.fixture(scope="module")
async def shared(control_server: RunningServer, migrated_dsn: str) -> AsyncIterator[LoneApi]:
    """The same as `lone`, made once a module."""
    dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    async with lone_api(dsn) as api:
        await api.add_host()
        yield api


@pytest_asyncio.fixture(scope="module")
async def asking(shared: LoneApi) -> Caller:
    """A caller of `shared`."""
    return await shared.caller()


@pytest_asyncio.fixture(scope="module")
async def signed_in(shared: LoneApi) -> Person:
    """Somebody who is signed in to `shared`."""
    return await sign_in(shared.http, shared.control_dsn, await shared.caller())
