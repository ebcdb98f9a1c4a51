"""What a team may have altogether: exact, whoever asks at once, over two API processes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.store.session import fetch
from tests.queries.conftest import Asked, database_of
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.model_server import sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

SQL = "CREATE TABLE notes (id integer PRIMARY KEY)"
FILE = """
[tiers.pro]
blueprints = 4
blueprint_versions = 4
blueprint_applications = 4
query_executions = 4
"""
LIMIT = 4
Apis = tuple[httpx.AsyncClient, httpx.AsyncClient]


@dataclass(frozen=True)
class Both:
    """Two API processes with small bounds, and the same key at either."""

    callers: tuple[Caller, Caller]

    async def at_once(self, count: int, method: str, path: str, body: Any) -> list[httpx.Response]:
        asked = (self.callers[number % 2] for number in range(count))
        if method == "PATCH":
            return await asyncio.gather(
                *(one.patch(path, {**body, "sql_content": f"{SQL};\n-- {n}"}) for n, one in enumerate(asked))
            )
        return await asyncio.gather(*(one.post(path, body) for one in asked))


@pytest_asyncio.fixture(scope="module")
async def apis(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Apis]:
    file = tmp_path_factory.mktemp("bounds") / "plans.toml"
    file.write_text(FILE)
    async with (
        service.another_api(PLANS_FILE=str(file)) as (first, _),
        service.another_api(PLANS_FILE=str(file)) as (second, _),
    ):
        yield first, second


def both(apis: Apis, caller: Caller) -> Both:
    first, second = apis
    return Both((replace(caller, http=first), replace(caller, http=second)))


@pytest_asyncio.fixture
async def pair(service: RunningService, apis: Apis) -> Both:
    """Of a team of its own, which has nothing yet."""
    return both(apis, await service.caller())


def passed(answers: list[httpx.Response], status: int, code: str, resource: str) -> int:
    """How many were let through; the others were refused like this."""
    refused = [answer for answer in answers if not answer.is_success]
    for answer in refused:
        assert error_of(answer, status, code)["details"] == {"resource": resource, "limit": LIMIT}
        assert ("Retry-After" in answer.headers) == (status == 429)
    return len(answers) - len(refused)


async def test_blueprints(pair: Both) -> None:
    answers = await pair.at_once(20, "POST", "/blueprints", {"name": "notes", "sql_content": SQL})
    assert passed(answers, 422, "team_limit_reached", "blueprints") == LIMIT
    kept = body_of(await pair.callers[0].get("/blueprints"))["data"]
    assert len(kept) == LIMIT
    body_of(await pair.callers[0].delete(f"/blueprints/{kept[0]['uuid']}"))
    answers = await pair.at_once(6, "POST", "/blueprints", {"name": "notes", "sql_content": SQL})
    assert passed(answers, 422, "team_limit_reached", "blueprints") == 1


async def test_versions_of_one(service: RunningService, pair: Both) -> None:
    made = data_of(await pair.callers[0].post("/blueprints", {"name": "notes", "sql_content": SQL}), 201)
    answers = await pair.at_once(12, "PATCH", f"/blueprints/{made['uuid']}", {})
    assert passed(answers, 422, "team_limit_reached", "blueprint_versions") == LIMIT - 1
    assert data_of(await pair.callers[1].get(f"/blueprints/{made['uuid']}"))["version"] == LIMIT
    body_of(await pair.callers[1].patch(f"/blueprints/{made['uuid']}", {"name": "renamed"}))
    async with store(service.control_dsn):
        rows = await fetch(
            "SELECT v.id FROM blueprint_versions v JOIN blueprints b ON b.id = v.blueprint_id WHERE b.team_id = $1",
            pair.callers[0].team_id,
        )
        assert len(rows) == LIMIT
        body_of(await pair.callers[0].delete(f"/blueprints/{made['uuid']}"))
        rows = await fetch(
            "SELECT sum(length(sql_content)) AS left FROM blueprint_versions v JOIN blueprints b"
            " ON b.id = v.blueprint_id WHERE b.team_id = $1",
            pair.callers[0].team_id,
        )
        assert rows[0]["left"] == 0, "SQL that nothing was applied from"


async def test_applications_under_way(service: RunningService, apis: Apis) -> None:
    caller = await service.caller()
    databases = [await caller.created() for _ in range(2)]
    pair = both(apis, caller)
    made = data_of(await caller.post("/blueprints", {"name": "notes", "sql_content": SQL}), 201)
    body = {"blueprint_uuid": made["uuid"], "wait": False, "dry_run": True}
    paths = [f"/databases/{database['uuid']}/blueprint_applications" for database in databases]
    async with service.frozen("worker"):
        answers = await asyncio.gather(*(pair.at_once(8, "POST", path, body) for path in paths))
        assert passed([*answers[0], *answers[1]], 429, "too_many_under_way", "blueprint_applications") == LIMIT
        created = await pair.callers[0].create(blueprint_uuid=made["uuid"])
        error_of(created, 429, "too_many_under_way")

    async def room() -> bool:
        return (await pair.callers[0].post(paths[0], body)).is_success

    await until(room)


async def test_questions_at_once(service: RunningService, apis: Apis) -> None:
    asked = await database_of(service, "postgres", tier="pro")
    pair = both(apis, asked.caller)
    held = {**sql("SELECT 1 AS n"), "held": True}
    askers = [Asked(caller, asked.database) for caller in pair.callers]
    asking = [asyncio.create_task(askers[number % 2].ask(held)) for number in range(16)]
    try:
        # None gives its place back before all others were refused one.
        await until(lambda: sum(one.done() for one in asking) >= 16 - LIMIT)
    finally:
        service.model.released.set()
        answers = await asyncio.gather(*asking)
        service.model.released.clear()
    assert passed(answers, 429, "too_many_under_way", "query_executions") == LIMIT
    assert (await askers[0].ask(sql("SELECT 1 AS n"))).status_code == 200
