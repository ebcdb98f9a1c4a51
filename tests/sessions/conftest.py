"""One API for a whole module, and people who use it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.people import Person, sign_in


@pytest_asyncio.fixture(scope="module")
async def shared(copies: Copies) -> AsyncIterator[LoneApi]:
    """The same as `lone`, made once a module."""
    async with copies.lent() as dsn, lone_api(dsn) as api:
        yield api


@pytest_asyncio.fixture
async def person(shared: LoneApi) -> Person:
    """Somebody new who is signed in."""
    return await sign_in(shared.http, shared.control_dsn, await shared.caller())
