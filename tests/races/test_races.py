"""Random races of deletions, undeletions, destructions, protections and expiries, while processes are killed.

`RACES=500 RACES_SEED=7 make test ARGS="-m soak tests/races"` chooses how many and which; `RACES_SECONDS=600` ends them
sooner. The log says how many there were.
"""

import asyncio
import logging
import math
import os
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from activities.engine import EngineActivitiesOnHosts
from app.contracts.base import Engine
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.local.stack_file import StackHost
from app.outbox.provisionings import RunningProvisionings
from app.quotas.plans import DEFAULT_PLANS
from tests.e2e.chaos import ENGINES
from tests.e2e.hosts import objects
from tests.e2e.patient_client import PatientClient
from tests.races.contest import REST_SECONDS, Contest, patient
from tests.support.service import RunningService
from tests.support.store import store

log = logging.getLogger(__name__)

SHORT = 6
"""Races on each engine in the ordinary run."""
TABLES = 20
"""Databases side by side in the long form."""


async def test_a_few_races(service: RunningService) -> None:
    seed = 20261122
    async with store(service.control_dsn), asyncio.TaskGroup() as group:
        killing = group.create_task(_kill_once(service, random.Random(seed)))
        playing = [
            group.create_task(_races(service, engine, SHORT, 6, seed))
            for engine in ENGINES
            if engine is Engine.POSTGRES or service.mysql
        ]
    assert killing.done()
    for contest in playing:
        assert contest.result().races == SHORT


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
async def test_thousands_of_races(service: RunningService, engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, __name__.partition(".")[0])
    races = int(os.environ.get("RACES", "10000"))
    seed = int(os.environ.get("RACES_SEED", time.time_ns() % 1_000_000))
    log.info("seed %s", seed)
    seconds = float(os.environ.get("RACES_SECONDS", "inf"))
    async with store(service.control_dsn), _killing(service, random.Random(seed)) as killed:
        contest = await _races(service, engine, races, TABLES, seed, seconds)
    ends, moves = dict(contest.ended), dict(contest.moves)
    log.info("%s: %s races, %s kills, ends %s, moves %s", engine, contest.races, len(killed), ends, moves)
    assert contest.races == races or seconds < math.inf
    assert killed


async def _races(
    service: RunningService, engine: Engine, races: int, tables: int, seed: int, seconds: float = math.inf
) -> Contest:
    """In a team whose tier retains all that it deletes. This process's store is the service's meanwhile."""
    caller = await service.caller(tier="enterprise")
    adapters = Adapters(service.box)
    steps = EngineActivitiesOnHosts(DEFAULT_PLANS, service.box, adapters, HostSlots(), RunningProvisionings())
    try:
        async with patient(service.http.base_url, caller.api_key) as http:
            client = PatientClient(http, REST_SECONDS)
            contest = Contest(client, steps, engine.value, random.Random(f"{seed} {engine}"))
            await contest.run(races, tables, seconds)
    finally:
        await adapters.close()
    assert not client.strange, "\n".join(client.strange)
    left = [one for one in await objects(_host(service, engine)) if any(name in one for name in contest.gone)]
    assert left == []
    return contest


def _host(service: RunningService, engine: Engine) -> StackHost:
    server = service.postgres if engine is Engine.POSTGRES else service.mysql
    assert server is not None
    return StackHost(
        engine=engine.value, region="us-east-1", host=server.host, port=server.port, admin_dsn=server.admin_dsn
    )


async def _kill_once(service: RunningService, chance: random.Random) -> None:
    """Worker and API, one after the other, while the races run."""
    for name in chance.sample(("worker", "api"), 2):
        await asyncio.sleep(chance.uniform(0.5, 1.5))
        await service.kill(name)
        await service.start(name)


@asynccontextmanager
async def _killing(service: RunningService, chance: random.Random) -> AsyncIterator[Sequence[str]]:
    """Kills one of them every few seconds during the block; afterwards both run."""
    killed: list[str] = []

    async def kill() -> None:
        while True:
            await asyncio.sleep(chance.uniform(5, 25))
            name = chance.choice(("worker", "worker", "api"))
            killed.append(name)
            await service.kill(name)
            await service.start(name)

    task = asyncio.create_task(kill())
    try:
        yield killed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for name in ("worker", "api"):
            if name not in service.processes:
                await service.start(name)
