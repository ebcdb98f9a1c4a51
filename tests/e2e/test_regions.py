"""Two regions: an engine host of each kind in both, a worker for both, and pools of their own."""

import asyncio
from collections import Counter
from pathlib import Path

from app.contracts.base import Engine
from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES
from tests.e2e.hosts import login
from tests.e2e.patient_client import client_of
from tests.local.stack_process import FORKED
from tests.support.stack import LiveStack, live_stack
from tests.support.waiting import until

REGIONS = ("us-east-1", "eu-west-1")
POOL_SIZE = 1


async def _ready(stack: LiveStack) -> Counter[tuple[str, str]]:
    rows = await stack.control("SELECT engine, region FROM databases WHERE team_id IS NULL AND status = 'active'")
    return Counter((row["engine"], row["region"]) for row in rows)


async def test_every_region_has_hosts_and_pools_of_its_own(tmp_path: Path) -> None:
    wanted = Counter({(engine.value, region): POOL_SIZE for engine in ENGINES for region in REGIONS})
    settings = {"REGIONS": ",".join(REGIONS), "POOL_SIZE": str(POOL_SIZE), "REFILL_INTERVAL_SECONDS": "1"}
    async with live_stack(tmp_path / "home", FORKED, **settings, DELETION_GRACE_SECONDS="0") as stack:

        async def full() -> bool:
            return await _ready(stack) == wanted

        await until(full, timeout=240)
        ports = {(Engine(host.engine), host.region): host.port for host in stack.file.hosts}
        async with client_of(stack) as client:
            for (engine, region), port in ports.items():
                made = await client.send("POST", "/databases", body={"name": "db", "db_type": engine, "region": region})
                assert (made.status, made.data["region"], made.data["port"]) == (201, region, port)
                assert await login(made.data["connection_string"]) == 1
            # One more of each than the pools hold: what they don't serve is made, in the region asked for.
            rest = await asyncio.gather(*(client.create(Engine.POSTGRES) for _ in range(2 * POOL_SIZE + 1)))
            assert {one.status for one in rest} == {201}
            await until(full, timeout=240)
        await settled(stack)
