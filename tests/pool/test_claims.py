"""Creates that the pool serves: active at once, and as if they had been made for their team."""

from uuid import UUID

import asyncpg

from tests.pool.conftest import POOL_SIZE
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.moves import events_of
from tests.support.pools import full
from tests.support.service import RunningService


async def test_a_create_from_the_pool(pooled: RunningService, caller: Caller) -> None:
    members = await full(POOL_SIZE)
    data = data_of(await caller.create("orders"), 201)
    assert UUID(data["uuid"]) == members[0]
    assert (data["status"], data["name"], data["plan"], data["team_id"]) == ("active", "orders", "free", caller.team_id)
    tenant = await asyncpg.connect(data["connection_string"])
    try:
        assert await tenant.fetchval("SELECT current_user") == data["db_username"]
    finally:
        await tenant.close()
    assert await events_of(data["uuid"]) == ["database.provisioned"]
    assert await full(POOL_SIZE)
