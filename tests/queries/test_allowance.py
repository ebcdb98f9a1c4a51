"""The day's allowance: exact, whoever asks at once, and given back when no SQL came."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from app.store.session import fetch
from tests.queries.conftest import Asked, database_of
from tests.support.answers import body_of, error_of
from tests.support.model_server import says, sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import seconds_to_midnight, until, until_day_is_long

READ = sql("SELECT 1 AS n")


pytestmark = pytest.mark.usefixtures("long_day")


@pytest.fixture
async def long_day() -> None:
    await until_day_is_long()


async def free(service: RunningService) -> Asked:
    return await database_of(service, "postgres", tier="free")


async def counted(service: RunningService, asked: Asked) -> int:
    async with store(service.control_dsn):
        [row] = await fetch("SELECT count(*) FROM query_executions WHERE team_id = $1 AND counts", asked.caller.team_id)
    return int(row["count"])


async def test_a_free_teams_eleventh_question(service: RunningService) -> None:
    asked = await free(service)
    turns = [READ] * 7 + [sql("DROP TABLE orders", "ddl"), sql("SELECT 1 / 0"), sql("SELECT nothing")]
    assert [(await asked.ask(turn)).status_code for turn in turns] == [200] * 7 + [422, 500, 500]
    before = seconds_to_midnight()
    answer = await asked.ask(READ)
    error = error_of(answer, 429, "query_allowance_exceeded")
    assert error["details"] == {"allowance": 10}
    assert seconds_to_midnight() <= int(answer.headers["Retry-After"]) <= before + 1
    assert await counted(service, asked) == 10


async def test_what_failed_before_there_was_sql_counts_nothing(service: RunningService) -> None:
    asked = await free(service)
    for turn in [says("no"), {"status": 500}, {"close": True}] * 4:
        assert (await asked.ask(turn)).status_code in (422, 503)
    assert [(await asked.ask(READ)).status_code for _ in range(11)] == [200] * 10 + [429]


async def test_thirty_at_once_over_two_processes(service: RunningService) -> None:
    asked = await free(service)
    async with service.another_api() as (http, _):
        other = at(http, asked)
        answers = await asyncio.gather(*((asked, other)[n % 2].ask({**READ, "delay": 0.2}) for n in range(30)))
    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 20
    assert await counted(service, asked) == 10


def at(http: httpx.AsyncClient, asked: Asked) -> Asked:
    """The same key at another process."""
    return Asked(replace(asked.caller, http=http), asked.database)


async def test_places_of_a_process_that_died_free_themselves(service: RunningService) -> None:
    asked = await free(service)
    async with service.another_api() as (http, process):
        other = at(http, asked)
        asking = [asyncio.create_task(other.ask({**READ, "delay": 60})) for _ in range(10)]

        async def all_taken() -> bool:
            async with store(service.control_dsn):
                rows = await fetch("SELECT 1 FROM query_executions WHERE team_id = $1", asked.caller.team_id)
            return len(rows) == 10

        await until(all_taken)
        await process.kill()
        await asyncio.gather(*asking, return_exceptions=True)
    error_of(await asked.ask(READ), 429, "query_allowance_exceeded")
    async with store(service.control_dsn):
        await fetch("UPDATE query_executions SET reserved_until = now() WHERE team_id = $1", asked.caller.team_id)
    assert [(await asked.ask(READ)).status_code for _ in range(11)] == [200] * 10 + [429]
    async with store(service.control_dsn):
        await fetch(
            "UPDATE query_executions SET created_at = created_at - interval '1 day' WHERE team_id = $1",
            asked.caller.team_id,
        )
    body_of(await asked.ask(READ))
    async with store(service.control_dsn):
        rows = await fetch(
            "SELECT outcome, count(*) FROM query_executions WHERE team_id = $1 GROUP BY 1", asked.caller.team_id
        )
    assert {row["outcome"]: row["count"] for row in rows} == {"abandoned": 10, "succeeded": 11}


async def test_an_answer_that_comes_after_its_place_was_given_away(service: RunningService) -> None:
    asked = await free(service)
    service.model.released.clear()
    asking = asyncio.create_task(asked.ask({**sql("DELETE FROM orders WHERE id = 1", "write"), "held": True}))

    async def expired() -> bool:
        async with store(service.control_dsn):
            rows = await fetch(
                "UPDATE query_executions SET reserved_until = now() WHERE team_id = $1 RETURNING id",
                asked.caller.team_id,
            )
        return bool(rows)

    await until(expired)
    service.model.released.set()
    error_of(await asking, 503, "language_model_unavailable")
    assert await asked.run("SELECT count(*) FROM orders") == [(3,)]
    assert await counted(service, asked) == 0


@pytest.mark.parametrize(("tier", "allowance"), [("pro", 500), ("enterprise", None)])
async def test_what_tiers_may_ask(service: RunningService, tier: str, allowance: int | None) -> None:
    asked = await database_of(service, "postgres", tier=tier)
    body_of(await asked.ask(READ))
    async with store(service.control_dsn):
        await fetch(
            "INSERT INTO query_executions (team_id, question, model, counts, reserved_until, outcome)"
            " SELECT $1, 'q', 'm', true, now(), 'succeeded' FROM generate_series(1, 498)",
            asked.caller.team_id,
        )
    statuses = [(await asked.ask(READ)).status_code for _ in range(2)]
    assert statuses == ([200, 429] if allowance else [200, 200])


async def test_each_team_has_its_own(service: RunningService) -> None:
    one, two = await free(service), await free(service)
    for _ in range(10):
        body_of(await one.ask(READ))
    assert (await one.ask(READ)).status_code == 429
    body_of(await two.ask(READ))
