"""A change of quotas reaches the engine: what it says then is what it does."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio

from tests.mysql_client import query
from tests.servers import RunningServer
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.service import RunningService


@pytest_asyncio.fixture(scope="module")
async def patient(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """Of an API that waits for the engine as long as a busy machine may take."""
    async with service.another_api(LIMITS_TIMEOUT_SECONDS="60") as (http, _):
        yield http


@pytest_asyncio.fixture
async def caller(service: RunningService, patient: httpx.AsyncClient) -> Caller:
    return await service.caller(http=patient)


async def test_postgres_takes_on_the_limit(caller: Caller, postgres_server: RunningServer) -> None:
    made = await caller.created()
    path = f"/databases/{made['uuid']}/quotas"
    admin: Any = await asyncpg.connect(postgres_server.admin_dsn)
    try:
        for limit, in_force in ((2, 2), (4, 4), (None, 10)):
            answer = body_of(await caller.patch(path, {"connection_hard_limit": limit}))
            assert answer["message"] == "Quotas updated."
            seen = await admin.fetchval("SELECT rolconnlimit FROM pg_roles WHERE rolname = $1", made["db_username"])
            assert seen == in_force
    finally:
        await admin.close()


async def test_mysql_takes_on_the_limit(caller: Caller, mysql_server: RunningServer) -> None:
    made = await caller.created(db_type="mysql")
    # Null is the plan's own, and never the 0 that means no limit at all here.
    for limit, in_force in ((2, 2), (4, 4), (None, 10)):
        body_of(await caller.patch(f"/databases/{made['uuid']}/quotas", {"connection_hard_limit": limit}))
        rows = await query(
            mysql_server, f"SELECT max_user_connections FROM mysql.user WHERE user = '{made['db_username']}'"
        )
        assert {seen for (seen,) in rows} == {in_force}


async def test_the_first_limit_is_the_one_of_the_create(caller: Caller) -> None:
    made = await caller.created(connection_hard_limit=1)
    held = await asyncpg.connect(made["connection_string"])
    try:
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await asyncpg.connect(made["connection_string"])
    finally:
        await held.close()
