"""Many more creates at once than the pool has: nothing is given twice, and the pool comes back to its size."""

import asyncio

import asyncpg
import pytest

from app.contracts.base import Engine
from app.databases.pool.targets import set_target
from app.store.session import fetch
from tests.pool.conftest import POOL_SIZE
from tests.support.client import Caller
from tests.support.pools import full
from tests.support.service import REGION, RunningService
from tests.support.waiting import until

_LOGINS_AT_ONCE = 8


async def storm(caller: Caller, *, creates: int, size: int) -> None:
    members = {str(member) for member in await full(size)}
    answers = await asyncio.gather(*(caller.create(f"db-{number}") for number in range(creates)))
    assert {answer.status_code for answer in answers} <= {201, 202}
    made = {answer.json()["data"]["uuid"]: answer for answer in answers}
    assert len(made) == creates, "a database was given twice"
    assert members <= made.keys(), "the pool was not used up"
    assert {made[uuid].status_code for uuid in members} == {201}

    async def all_active() -> bool:
        sql = "SELECT count(*) AS n FROM databases WHERE team_id = $1 AND status = 'active'"
        return bool((await fetch(sql, caller.team_id))[0]["n"] == creates)

    await until(all_active, timeout=180)
    await full(size)
    await _each_lets_its_tenant_in([answer.json()["data"]["connection_string"] for answer in answers])
    rows = await fetch("SELECT database_id FROM events WHERE team_id = $1 AND type = $2", caller.team_id, _ACTIVE)
    assert len({row["database_id"] for row in rows}) == len(rows) == creates


_ACTIVE = "database.provisioned"


async def _each_lets_its_tenant_in(addresses: list[str]) -> None:
    slots = asyncio.Semaphore(_LOGINS_AT_ONCE)

    async def log_in(address: str) -> str:
        async with slots:
            tenant = await asyncpg.connect(address, timeout=30)
            try:
                name: str = await tenant.fetchval("SELECT current_user || '@' || current_database()")
                return name
            finally:
                await tenant.close()

    assert len(set(await asyncio.gather(*map(log_in, addresses)))) == len(addresses)


async def test_a_gust_of_claims(pooled: RunningService, caller: Caller) -> None:
    await storm(caller, creates=24, size=POOL_SIZE)


@pytest.mark.soak
async def test_a_storm_of_claims(pooled: RunningService, caller: Caller) -> None:
    await set_target(Engine.POSTGRES, REGION, 20)
    try:
        await storm(caller, creates=200, size=20)
    finally:
        await set_target(Engine.POSTGRES, REGION, None)
    await full(POOL_SIZE)
