"""Headwater on many machines, which fail one after the other while customers work.

`make test ARGS="-m soak tests/nodes --faults 40 --seed 3 -o log_cli=true -o log_cli_level=INFO"`. It takes root and a
Linux that makes network namespaces; with Debian's package libfaketime half of the machines have clocks that are half a
minute ahead. Temporal is its development server, of which there is one: see docs/testing.md.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from app.auth.keys import KeyControls
from app.contracts.base import Engine
from tests.cli.command import Headwater
from tests.e2e.patient_client import PatientClient
from tests.kills.customer import Customer, Journal
from tests.kills.rest import EVENTS, PATIENCE_SECONDS, check_databases, check_rows_and_events, finished
from tests.nodes.faults import HEALED_SECONDS, inject_faults
from tests.nodes.network import missing, network
from tests.nodes.plant import CLOCKS_DIFFER, REGIONS, Plant, plant
from tests.support.client import ALL_SCOPES, UNHURRIED, Caller, new_caller
from tests.support.receiver import Receiver, receiver

log = logging.getLogger(__name__)

_OBJECTS = """
SELECT datname FROM pg_database WHERE datname ~ '^t[a-z2-7]{22}'
UNION ALL SELECT rolname FROM pg_roles WHERE rolname ~ '^t[a-z2-7]{22}'
"""
_QUOTA = 200
"""Requests that a key may make in a month."""
_FORGOTTEN = 2
"""Requests are counted without waiting for the disk (`app.auth.admission`): a lost primary takes the counts of its last
second with it."""
_HERE = "10.211.77.1"
"""This process's address in the network."""

pytestmark = [pytest.mark.soak, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


async def test_machines_fail_and_nothing_is_lost(
    tmp_path: Path, pytestconfig: pytest.Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tests")
    faults, seed = int(pytestconfig.getoption("faults")), int(pytestconfig.getoption("seed"))
    log.info("clocks differ by half a minute: %s", CLOCKS_DIFFER)
    with network() as lan:
        async with receiver(tmp_path, address=_HERE) as receiving:
            settings = {
                "WEBHOOK_ALLOW_CIDRS": "10.211.77.0/24",
                "WEBHOOK_CA_FILE": str(receiving.ca_file),
                "WEBHOOK_RETRY_SCHEDULE": ",".join(["0", *["1"] * 60]),
            }
            async with plant(tmp_path, lan, **settings) as made:
                await _storm(made, receiving, faults, seed)


async def _storm(made: Plant, receiving: Receiver, faults: int, seed: int) -> None:
    journal, stop = Journal(), asyncio.Event()
    async with httpx.AsyncClient(base_url=made.url, timeout=40, trust_env=False) as http:
        scopes = (*ALL_SCOPES, "teams:read", "teams:write")
        caller = await new_caller(http, made.control_dsn, tier="enterprise", scopes=scopes, controls=UNHURRIED)
        probing = await new_caller(http, made.control_dsn, tier="enterprise", controls=UNHURRIED)
        counted = KeyControls(requests_per_minute=100_000, monthly_quota=_QUOTA)
        reader = await new_caller(http, made.control_dsn, controls=counted)
        endpoint = {"url": receiving.url("/events", _HERE), "events": EVENTS}
        assert (await caller.post("/webhook_endpoints", endpoint)).status_code == 201
    async with _client(made, caller) as client, _client(made, probing) as prober, _client(made, reader) as limited:
        async with asyncio.TaskGroup() as group:
            for number in range(2):
                chance = random.Random(f"{seed} {number}")
                engines = (Engine.POSTGRES,)
                customer = Customer(client, journal, chance, engines, made.control_dsn, regions=REGIONS, asks=False)
                group.create_task(customer.work(caller.user_id, stop))
            reading = group.create_task(_read(limited.http, stop))
            healed = await inject_faults(made, prober, faults, random.Random(seed))
            stop.set()
        answered = reading.result()
        await _check(made, client, journal, receiving, caller.team_id)
        assert answered + await _read(limited.http, stop, until_refused=True) <= _QUOTA + _FORGOTTEN
        assert not client.strange + prober.strange, "\n".join(client.strange + prober.strange)
    log.info(
        "acts: %s; of %s requests that a key may make %s were answered in the storm", journal.acts, _QUOTA, answered
    )
    for what, seconds in healed.seconds.items():
        log.info("%s: healed after %.1f s", what, seconds)
    assert max(healed.seconds.values()) < HEALED_SECONDS


async def _read(http: httpx.AsyncClient, stop: asyncio.Event, *, until_refused: bool = False) -> int:
    """Reads with a key that may do so only so often; returns how often it was answered. A request whose answer was lost
    may count."""
    answered = 0
    while until_refused or not stop.is_set():
        try:
            answer = await http.get("/databases")
        except httpx.TransportError:
            continue
        answered += answer.status_code == 200
        if until_refused and answer.status_code == 429:
            return answered
        await asyncio.sleep(0 if until_refused else 1)
    return answered


async def _check(made: Plant, client: PatientClient, journal: Journal, receiving: Receiver, team: int) -> None:
    """All is as the customers were told, and when they have deleted everything nothing is left."""
    assert journal.faults == []
    await finished(made.rows)
    await check_databases(client, journal)
    settings = {name.removeprefix("HEADWATER_"): value for name, value in made.environ.items() if "HEADWATER_" in name}
    assert (await Headwater(settings).json("check"))["violations"] == []
    for uuid in journal.kept:
        assert (await client.delete(uuid)).status == 200
    await finished(made.rows)
    for host in made.hosts:
        connection = await asyncpg.connect(host.dsn())
        try:
            assert await connection.fetch(_OBJECTS) == []
        finally:
            await connection.close()
    await check_rows_and_events(made.rows, journal, receiving, team)


@asynccontextmanager
async def _client(made: Plant, caller: Caller) -> AsyncIterator[PatientClient]:
    headers = {"Authorization": f"Bearer {caller.api_key}"}
    async with httpx.AsyncClient(base_url=f"{made.url}/api/v1", headers=headers, timeout=40, trust_env=False) as http:
        yield PatientClient(http, PATIENCE_SECONDS, proxied=True)
