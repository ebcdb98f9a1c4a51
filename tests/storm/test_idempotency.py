"""One key, one database, one answer, however many ask at once and whatever dies."""

import asyncio
import os
import random
from collections import defaultdict

import pytest

from app.store.session import fetch
from tests.storm.storm import Answered, Processes, rage, requests, settled
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

SEED = int(os.environ.get("STORM_SEED", "1"))
"""The long form runs with this one and the two after it."""
_CALM_SECONDS = 3


async def weather(service: RunningService, *, seed: int, keys: int, each: int, at_once: int) -> None:
    dice = random.Random(seed)
    caller = await service.caller()
    wanted = requests(dice, keys=keys, each=each)
    async with Processes(service, 2).running() as processes, store(service.control_dsn):
        async with processes.killed_at_random(dice):
            async with service.frozen("worker"):  # so that requests which wait are killed while they do
                raging = asyncio.create_task(rage(caller, processes, wanted, dice, at_once=at_once))
                await asyncio.sleep(_CALM_SECONDS)
            answers = await raging
        assert processes.kills > 0
        by_key: dict[str, list[Answered]] = defaultdict(list)
        for answer in answers:
            by_key[answer.request.key].append(answer)
        winners = [await one_database(caller.user_id, of_key) for of_key in by_key.values()]
        assert len(set(winners)) == keys
        for winner, of_key in zip(winners, by_key.values(), strict=True):
            first = next(answer.request for answer in of_key if answer.request.body["name"] == winner)
            last = await settled(caller, processes, first)
            assert last.is_replay or not any(answer.status < 300 for answer in of_key), last
            check(winner, [*of_key, last])
        await nothing_is_left(service, caller, keys)


async def one_database(user_id: int, answers: list[Answered]) -> str:
    """The name of the only database that was made of these requests, all with one key."""
    names = {answer.request.body["name"] for answer in answers}
    rows = await fetch("SELECT name FROM databases WHERE created_by_id = $1 AND name = any($2)", user_id, list(names))
    assert len(rows) == 1, (answers[0].request.key, rows)
    name: str = rows[0]["name"]
    return name


def check(winner: str, answers: list[Answered]) -> None:
    """Of one key: at most one answer is the original, all others replay it or are told why not."""
    accepted = [answer for answer in answers if answer.status in (201, 202)]
    assert len([answer for answer in accepted if not answer.is_replay]) <= 1, answers
    assert len({(answer.status, str(answer.body["data"])) for answer in accepted}) == 1, answers
    for answer in answers:
        if answer.request.body["name"] != winner:
            assert (answer.status, answer.code) == (409, "idempotency_key_conflict"), answer
        elif answer not in accepted:
            assert (answer.status, answer.code) == (409, "idempotency_key_in_progress"), answer


async def nothing_is_left(service: RunningService, caller: Caller, keys: int) -> None:
    """Every database becomes active, no key stays in flight, every event was told once."""
    assert len(await fetch("SELECT 1 FROM databases WHERE team_id = $1", caller.team_id)) == keys

    async def all_active() -> bool:
        return not await fetch("SELECT 1 FROM databases WHERE team_id = $1 AND status <> 'active'", caller.team_id)

    await until(all_active)
    rows = await fetch("SELECT response_status FROM idempotency_keys WHERE user_id = $1", caller.user_id)
    assert len(rows) == keys
    assert all(row["response_status"] in (201, 202) for row in rows)
    events = await fetch("SELECT type, count(*) FROM events WHERE team_id = $1 GROUP BY type", caller.team_id)
    told = {row["type"]: row["count"] for row in events}
    assert told["database.provisioned"] == keys
    # The others came from a warm pool, if there is one.
    claimed = keys - told.get("database.provisioning_started", 0)
    assert claimed == 0 if service.settings.get("POOL_SIZE", "0") == "0" else claimed > 0


async def test_a_gust(service: RunningService) -> None:
    await weather(service, seed=SEED, keys=8, each=20, at_once=4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
async def test_a_storm(service: RunningService, seed: int) -> None:
    await weather(service, seed=seed, keys=200, each=20, at_once=10)
