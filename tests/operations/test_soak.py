"""`OPERATIONS_SOAK_SECONDS=120 OPERATIONS_SOAK_SEED=7 make test ARGS="-m soak tests/operations/test_soak.py"`.

Clients and an operator begin operations of all kinds, cancel and retry them, while a seeded hand kills and freezes the
worker, the API, Temporal, our own database and the engines. Then every operation has to end, and to agree with its
database.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Headwater
from tests.e2e.chaos import ENGINES, FaultInjector
from tests.e2e.patient_client import PatientClient, client_of
from tests.operations.agreement import ROWS, disagreements
from tests.support.stack import LiveStack, live_stack
from tests.support.waiting import until

CLIENTS = 5
BEGUN = {"create", "delete", "undelete", "limits", "pause", "resume", "rotate", "apply_blueprint"}
CALM_SECONDS = 180
"""How long after the last fault all may take to come to rest: what is lost is restarted by the next scheduled look."""
log = logging.getLogger(__name__)
_LEFT = "SELECT 1 FROM workflow_starts LIMIT 1"


@pytest.mark.soak
async def test_operations_end_through_a_storm_of_kills(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, __name__)
    seconds = float(os.environ.get("OPERATIONS_SOAK_SECONDS", "120"))
    seed = int(os.environ.get("OPERATIONS_SOAK_SEED", time.time_ns() % 1_000_000))
    settings = {"DELETION_GRACE_SECONDS": "3", "POOL_SIZE": "2"}
    async with live_stack(tmp_path / "home", **settings) as stack, client_of(stack, patience=CALM_SECONDS) as client:
        injector, ends = FaultInjector(stack, seed), time.monotonic() + seconds
        sql = {"name": "soak", "sql_content": "CREATE TABLE IF NOT EXISTS one (id integer);"}
        blueprint = (await client.send("POST", "/blueprints", body=sql)).data["uuid"]
        customers = [_Customer(client, random.Random(f"{seed} {number}"), blueprint) for number in range(CLIENTS)]
        operator = _Operator(stack, random.Random(f"{seed} operator"), customers)
        await asyncio.gather(injector.run(seconds), operator.run(ends), *(customer.run(ends) for customer in customers))
        await until(lambda: _at_rest(stack), timeout=CALM_SECONDS)
        kinds = await stack.control("SELECT type, status, count(*) FROM operations GROUP BY 1, 2 ORDER BY 1, 2")
        log.info("seed %s, %s faults: %s", seed, len(injector.faults), [tuple(kind) for kind in kinds])
        assert {kind["type"] for kind in kinds} >= BEGUN, kinds
        assert not client.strange, "\n".join(client.strange)


class _Found(list[str]):
    """True when nothing is wrong; shown when something stays so."""

    def __bool__(self) -> bool:
        return not len(self)


async def _at_rest(stack: LiveStack) -> _Found:
    try:
        left = await stack.control(_LEFT)
        return _Found(
            [*(["a workflow is still to be started"] if left else []), *disagreements(await stack.control(ROWS))]
        )
    except Exception as fault:  # what was killed is not back yet
        return _Found([f"can't look: {type(fault).__name__}: {fault}"])


class _Customer:
    def __init__(self, client: PatientClient, chance: random.Random, blueprint: str) -> None:
        self._client = client
        self._chance = chance
        self._blueprint = blueprint
        self.mine: list[str] = []

    async def run(self, ends: float) -> None:
        while time.monotonic() < ends:
            await self._act()
            await asyncio.sleep(self._chance.uniform(0, 0.5))

    async def _act(self) -> None:
        if len(self.mine) < 2:
            made = await self._client.create(self._chance.choice(ENGINES), wait=self._chance.choice((None, 1)))
            self.mine.append(made.data["uuid"])
            return
        database = self._chance.choice(self.mine)
        match self._chance.randrange(8):
            case 0:
                body = {"connection_hard_limit": self._chance.randint(2, 9)}
                await self._client.send("PATCH", f"/databases/{database}/quotas", body=body)
            case 1:
                await self._client.delete(database)
                if self._chance.random() < 0.5:
                    await self._undelete(database)
            case 2:
                await self._undelete(database)
            case 3:
                await self._client.send("POST", f"/databases/{database}/credential_rotations", body={})
            case 4:
                self.mine.remove(database)
            case 5:
                request = {"blueprint_uuid": self._blueprint, "wait": False}
                await self._client.send("POST", f"/databases/{database}/blueprint_applications", body=request)
            case way:
                await self._decide_again(database, "cancellations" if way == 6 else "retries")

    async def _undelete(self, database: str) -> None:
        await self._client.send("POST", f"/databases/{database}/undeletions")

    async def _decide_again(self, database: str, what: str) -> None:
        """Of the newest operation, whatever became of it meanwhile."""
        page: Any = (await self._client.send("GET", f"/operations?database_uuid={database}&limit=1")).data
        if page:
            await self._client.send("POST", f"/operations/{page[0]['uuid']}/{what}", body={})


class _Operator:
    """Pauses and resumes what is the customers'. What the command can't do while our own database is down, it says."""

    def __init__(self, stack: LiveStack, chance: random.Random, customers: Sequence[_Customer]) -> None:
        self._headwater = Headwater({"CONTROL_DSN": stack.file.control_dsn, "HOME": str(stack.home)})
        self._chance = chance
        self._customers = customers

    async def run(self, ends: float) -> None:
        while time.monotonic() < ends:
            await asyncio.sleep(self._chance.uniform(0, 1))
            if theirs := self._chance.choice(self._customers).mine:
                database = self._chance.choice(theirs)
                for change in ("pause", "resume")[: self._chance.randint(1, 2)]:
                    await self._headwater.run("databases", change, database)
