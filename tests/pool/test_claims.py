"""Creates that the pool serves, on real servers: active at once, and as if they had been made for their team."""

from typing import Any
from uuid import UUID

import aiomysql
import asyncpg
import pytest

from app.contracts.base import Engine
from app.upkeep.reconcile.service import check
from tests.pool.conftest import POOL_SIZE
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.metrics import scrape
from tests.support.moves import events_of
from tests.support.pools import full, ready
from tests.support.service import RunningService


async def test_a_create_from_the_pool(pooled: RunningService, caller: Caller) -> None:
    members = await full(POOL_SIZE)
    hits = {"engine": "postgres", "region": "us-east-1", "outcome": "hit"}
    before = (await scrape(pooled.http)).value("headwater_pool_claims_total", **hits)
    data = data_of(await caller.create("orders"), 201)
    assert UUID(data["uuid"]) in members
    tenant = await asyncpg.connect(data["connection_string"])
    try:
        assert await tenant.fetchval("SELECT current_user") == data["db_username"]
    finally:
        await tenant.close()
    assert await events_of(data["uuid"]) == ["database.provisioned"]
    assert (await scrape(pooled.http)).value("headwater_pool_claims_total", **hits) == before + 1
    assert await full(POOL_SIZE)


async def test_a_mysql_database_from_the_pool(pooled: RunningService, caller: Caller) -> None:
    if pooled.mysql is None:
        pytest.skip("no MySQL or MariaDB server on this machine")
    members = await full(POOL_SIZE, Engine.MYSQL)
    data = data_of(await caller.create(db_type="mysql"), 201)
    assert UUID(data["uuid"]) in members
    login: Any = {"host": data["host"], "port": data["port"], "user": data["db_username"]}
    tenant = await aiomysql.connect(**login, password=data["db_password"], db=data["db_name"])
    tenant.close()


async def test_other_limits_are_in_force_when_it_is_answered(pooled: RunningService, caller: Caller) -> None:
    members = await full(POOL_SIZE)
    body = body_of(await caller.create(connection_hard_limit=1), 201)
    assert body["message"] == "Database created."
    assert UUID(body["data"]["uuid"]) == members[0]
    tenant = await asyncpg.connect(body["data"]["connection_string"])
    try:
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await asyncpg.connect(body["data"]["connection_string"])
    finally:
        await tenant.close()


async def test_a_claimed_one_is_deleted_like_any_other(pooled: RunningService, caller: Caller) -> None:
    await full(POOL_SIZE)
    made = data_of(await caller.create(), 201)
    gone = data_of(await caller.delete(f"/databases/{made['uuid']}"))
    assert (gone["cancelled_provision_jobs"], gone["has_remote_resources"]) == (0, True)
    with pytest.raises(asyncpg.PostgresError):
        await asyncpg.connect(made["connection_string"])
    assert await events_of(made["uuid"]) == ["database.provisioned", "database.deleted"]


async def test_the_consistency_check_knows_the_members(pooled: RunningService) -> None:
    members = {str(uuid) for uuid in await full(POOL_SIZE)}
    report = await check(pooled.box, None)
    assert not members & {violation.subject for violation in report.violations}
    assert set(await ready()) >= {UUID(member) for member in members}
