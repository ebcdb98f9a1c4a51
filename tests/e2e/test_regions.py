"""Two regions: an engine host of each kind in both, a worker for both, and pools of their own."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from app.contracts.base import Engine
from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES
from tests.e2e.hosts import login
from tests.e2e.patient_client import PatientClient, client_of
from tests.local.stack_process import FORKED
from tests.support.stack import LiveStack, live_stack
from tests.support.waiting import until

REGIONS = ("us-east-1", "eu-west-1")
POOL_SIZE = 1


async def _ready(stack: LiveStack) -> Counter[tuple[str, str]]:
    rows = await stack.control("SELECT engine, region FROM databases WHERE team_id IS NULL AND status = 'active'")
    return Counter((row["engine"], row["region"]) for row in rows)


async def _from_pool(client: PatientClient, engine: Engine, region: str) -> dict[str, Any] | None:
    """A new database that was ready; None where one is made, since the ready one is just being tried again."""
    made = await client.send("POST", "/databases", body={"name": "db", "db_type": engine, "region": region})
    data: dict[str, Any] = made.data
    assert data["region"] == region
    return data if made.status == 201 else None


async def _is_active(client: PatientClient, database: str) -> bool:
    return bool((await client.get(database)).data["status"] == "active")


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
                made = await until(partial(_from_pool, client, engine, region))
                assert made is not None, "it was waited for"
                assert made["port"] == port
                assert await login(made["connection_string"]) == 1
            # One more of each than the pools hold: what they don't serve is made.
            rest = await asyncio.gather(*(client.create(Engine.POSTGRES) for _ in range(2 * POOL_SIZE + 1)))
            for one in rest:
                await until(partial(_is_active, client, one.data["uuid"]))
            await until(full, timeout=240)
        await settled(stack)
