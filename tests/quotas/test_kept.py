"""A team that creates and deletes in a loop holds a bounded share of a host, on the whole service."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.quotas.plans import DEFAULT_PLANS
from tests.e2e.chaos import ENGINES
from tests.quotas.conftest import Operator
from tests.quotas.tenant_session import session_of
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.waited import waited
from tests.support.waiting import until

BOUND = DEFAULT_PLANS.tiers["free"].deleted_databases
HELD = "SELECT count(*) FROM databases WHERE team_id = $1 AND destroyed_at IS NULL"
KEPT = "SELECT uuid FROM databases WHERE team_id = $1 AND destroyed_at IS NULL AND status = 'deleted' ORDER BY id"


async def created(caller: Caller, engine: str) -> dict[str, Any]:
    """Tried again while what was deleted is being destroyed, as a client would."""

    async def attempt() -> httpx.Response | None:
        answer = await caller.create(wait=True, db_type=engine)
        return None if answer.status_code == 429 else answer

    answer = await until(attempt)
    assert answer is not None
    made: dict[str, Any] = (await waited(caller, answer, "/databases"))["data"]
    return made


async def delete(caller: Caller, made: dict[str, Any]) -> None:
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


async def loop(operator: Operator, caller: Caller, engine: str, rounds: int, most: int) -> list[str]:
    deleted = []
    for _ in range(rounds):
        made = await created(caller, engine)
        assert (await operator.sql(HELD, caller.team_id))[0]["count"] <= most
        await delete(caller, made)
        assert (await operator.sql(HELD, caller.team_id))[0]["count"] <= most
        deleted.append(made["uuid"])
    return deleted


async def only(operator: Operator, caller: Caller, kept: list[str]) -> bool:
    return [str(row["uuid"]) for row in await operator.sql(KEPT, caller.team_id)] == kept


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_free_team_in_a_loop_holds_one_and_its_bound(operator: Operator, engine: str) -> None:
    caller = await operator.service.caller(tier="free")
    deleted = await loop(operator, caller, engine, BOUND + 3, BOUND + 1)
    # The others are gone from the host, long before their grace was over.
    await until(lambda: only(operator, caller, deleted[-BOUND:]))


async def test_a_pro_team_in_a_loop_does_so_too(operator: Operator, tmp_path: Path) -> None:
    smaller = tmp_path / "plans.toml"
    smaller.write_text("[tiers.pro]\ndeleted_databases = 2\n")
    async with operator.service.another_api(PLANS_FILE=str(smaller)) as (http, _):
        caller = await operator.service.caller(http=http)
        deleted = await loop(operator, caller, "postgres", 5, 3)
        await until(lambda: only(operator, caller, deleted[-2:]))


async def test_a_worker_killed_before_the_oldest_was_woken(operator: Operator) -> None:
    caller, service = await operator.service.caller(tier="free"), operator.service
    deleted = await loop(operator, caller, "postgres", BOUND, BOUND + 1)
    last = await created(caller, "postgres")
    await service.kill("worker")
    deleting = asyncio.create_task(delete(caller, last))
    await until(
        lambda: operator.sql("SELECT 1 FROM databases WHERE uuid = $1 AND destroy_at <= now()", UUID(deleted[0]))
    )
    await service.start("worker")
    await deleting
    await until(lambda: only(operator, caller, [*deleted[1:], last["uuid"]]))


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_written_since_the_last_measurement_counts(
    operator: Operator, caller: Caller, engine: str
) -> None:
    made = await created(caller, engine)
    async with session_of(made) as session:
        await session.load(8)
    # A scheduled run may make the row in between, with nothing measured yet.
    usage = (
        "SELECT storage_bytes FROM database_usage u JOIN databases d ON d.id = u.database_id"
        " WHERE d.uuid = $1 AND u.storage_bytes > 0"
    )
    await operator.sql(
        "DELETE FROM database_usage u USING databases d WHERE d.id = u.database_id AND d.uuid = $1", UUID(made["uuid"])
    )
    await delete(caller, made)
    rows = await until(lambda: operator.sql(usage, UUID(made["uuid"])))
    assert rows[0]["storage_bytes"] > 8 * 2**20
