"""A longer storm, when asked for: `SOAK_SECONDS=180 SOAK_SEED=7 make test ARGS=tests/e2e/test_soak.py`.

Clients create and delete while parts are killed and frozen at random; then all must come to rest as the
clients were told. The seed fixes what fails when; what the clients are doing then is the machine's. `SOAK_MYSQLD`
names another MySQL server than this machine's.
"""

import asyncio
import logging
import os
import random
import time
from pathlib import Path

import pytest

from tests.e2e.chaos import ENGINES, FaultInjector, Ledger, check, create, delete
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.stack import live_stack

log = logging.getLogger(__name__)

CLIENTS = 6
CALM_SECONDS = 120
"""How long after the last fault all may take to come to rest. A part that was killed often waits longer before
each new start."""

pytestmark = pytest.mark.skipif("SOAK_SECONDS" not in os.environ, reason="asked for by SOAK_SECONDS")


async def test_a_storm_of_kills_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, __name__.partition(".")[0])
    seconds = float(os.environ["SOAK_SECONDS"])
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    log.info("seed %s", seed)
    settings = {"DELETION_GRACE_SECONDS": "3", "POOL_SIZE": "2", "MYSQLD": os.environ.get("SOAK_MYSQLD", "")}
    async with live_stack(tmp_path / "home", **settings) as stack:
        injector, ledger = FaultInjector(stack, seed), Ledger()
        async with client_of(stack, patience=CALM_SECONDS) as client:
            ends = time.monotonic() + seconds
            clients = [_customer(client, ledger, random.Random(f"{seed} {n}"), ends) for n in range(CLIENTS)]
            await asyncio.gather(injector.run(seconds), *clients)
        calm = await check(stack, ledger, CALM_SECONDS)
        log.info("%s created, %s deleted, at rest after %.1f s", len(ledger.created), len(ledger.deleted), calm)
        assert not client.strange, "\n".join(client.strange)
        assert len(injector.faults) > seconds / 10


async def _customer(client: PatientClient, ledger: Ledger, chance: random.Random, ends: float) -> None:
    mine: list[str] = []
    while time.monotonic() < ends:
        if mine and chance.random() < 0.45:
            await delete(client, ledger, mine.pop(chance.randrange(len(mine))))
        else:
            wait = chance.choice((None, 1, 20))
            mine.append(await create(client, ledger, chance.choice(ENGINES), wait=wait))
        await asyncio.sleep(chance.uniform(0, 0.5))
