"""One API for a whole module, for tests that only ask and leave nothing that another could meet."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.people import Person, sign_in


@pytest_asyncio.fixture(scope="module")
async def shared(copies: Copies) -> AsyncIterator[LoneApi]:
    """The same as `lone`, made once a module."""
    async with copies.lent() as dsn, lone_api(dsn) as api:
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
