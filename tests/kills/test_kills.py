"""Single processes of the embedded stack are killed, one after the other, under customers who use everything.

`make test ARGS="-m soak tests/kills --kills 1000 -o log_cli=true -o log_cli_level=INFO"` shows the figures;
docs/benchmarks.md has them. `--seed` fixes who is killed when.
"""

import asyncio
import logging
import random
from pathlib import Path

import httpx
import pytest

from app.contracts.base import Engine
from tests.cli.command import Headwater
from tests.e2e.hosts import objects
from tests.e2e.patient_client import PatientClient, client_of
from tests.kills.customer import Customer, Journal
from tests.kills.recoveries import kill_parts
from tests.kills.rest import EVENTS, PATIENCE_SECONDS, check_databases, check_rows_and_events, finished
from tests.support.client import ALL_SCOPES, UNHURRIED, new_caller
from tests.support.model_server import MODEL, model_server
from tests.support.receiver import Receiver, receiver
from tests.support.stack import LiveStack, live_stack

log = logging.getLogger(__name__)

_CUSTOMERS = 3
_ENGINES = (Engine.POSTGRES, Engine.MYSQL)


@pytest.mark.soak
async def test_nothing_is_lost_whoever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    kills, seed = int(pytestconfig.getoption("kills")), int(pytestconfig.getoption("seed"))
    async with model_server() as model, receiver(tmp_path) as receiving:
        for name, value in model.environ.items():
            monkeypatch.setenv(name, value)
        settings = {
            "NL_MODEL": MODEL,
            "DELETION_GRACE_SECONDS": "3",
            "WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8",
            "WEBHOOK_CA_FILE": str(receiving.ca_file),
            "WEBHOOK_RETRY_SCHEDULE": ",".join(["0", *["1"] * 60]),
        }
        async with live_stack(tmp_path / "home", **settings) as stack:
            await _storm(stack, receiving, kills, seed)


async def _storm(stack: LiveStack, receiving: Receiver, kills: int, seed: int) -> None:
    journal, stop = Journal(), asyncio.Event()
    async with httpx.AsyncClient(base_url=stack.file.api_url, timeout=40, trust_env=False) as plain:
        scopes = (*ALL_SCOPES, "teams:read", "teams:write")
        caller = await new_caller(plain, stack.file.control_dsn, tier="enterprise", scopes=scopes, controls=UNHURRIED)
        endpoint = {"url": receiving.url("/events"), "events": EVENTS}
        assert (await caller.post("/webhook_endpoints", endpoint)).status_code == 201
    headers = {"Authorization": f"Bearer {caller.api_key}"}
    base = f"{stack.file.api_url}/api/v1"
    async with (
        httpx.AsyncClient(base_url=base, headers=headers, timeout=40, trust_env=False) as http,
        client_of(stack, patience=PATIENCE_SECONDS) as prober,
    ):
        client = PatientClient(http, PATIENCE_SECONDS)
        async with asyncio.TaskGroup() as group:
            for number in range(_CUSTOMERS):
                chance = random.Random(f"{seed} {number}")
                customer = Customer(client, journal, chance, _ENGINES, stack.file.control_dsn)
                group.create_task(customer.work(caller.user_id, stop))
            recoveries = await kill_parts(stack, prober, _ENGINES, kills, random.Random(seed))
            stop.set()
        await _check(stack, client, journal, receiving, caller.team_id)
        assert not client.strange + prober.strange, "\n".join(client.strange + prober.strange)
    log.info("%s\nacts: %s", "\n".join(recoveries.lines()), journal.acts)


async def _check(stack: LiveStack, client: PatientClient, journal: Journal, receiving: Receiver, team: int) -> None:
    """All is as the customers were told, and when they have deleted everything nothing is left."""
    assert journal.faults == []
    await finished(stack.control)
    await check_databases(client, journal)
    report = await _headwater(stack).json("check")
    assert report["violations"] == []
    for uuid in journal.kept:
        assert (await client.delete(uuid)).status == 200
    await finished(stack.control)
    for host in stack.file.hosts:
        assert await objects(host) == []
    await check_rows_and_events(stack.control, journal, receiving, team)


def _headwater(stack: LiveStack) -> Headwater:
    return Headwater({"HOME": str(stack.home)})
