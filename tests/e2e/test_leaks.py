"""Creates and deletes leave nothing behind: no database, login, session, file or open workflow, and no memory.

The longer form, with -m soak, makes 1,000 databases; `LEAK_CYCLES` sets another number. There is a warm pool meanwhile,
a receiver of webhooks, and some of the databases are asked questions, so that they get accounts of helpers.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES, Ledger, create, delete
from tests.e2e.leaks import Holdings, holdings
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.model_server import MODEL, model_server, script, sql
from tests.support.receiver import receiver
from tests.support.stack import LiveStack, live_stack
from tests.support.waiting import until

log = logging.getLogger(__name__)

AT_ONCE = 8
SHORT, LONG = 16, 1000
POOL, ASKED = 3, 6
"""In the longer form: databases in each warm pool, and of how many pairs of databases one is asked something."""
SPARE_FILES = 12
"""Open files, beside those of sessions, that may be held more at one time than at another."""
SPARE_SESSIONS = 24
"""The same of sessions: the pools of several processes, each as far open as its busiest moment needed."""
SPARE_MEMORY = 16
"""MiB. What allocators and caches take while they warm up; a leak of 20 KiB a database shows in the longer form."""


async def test_a_few_creates_and_deletes_leave_nothing(stack: LiveStack) -> None:
    before, after = await _around(stack, warm_up=SHORT, cycles=SHORT)
    _check(before, after)


@pytest.mark.soak
async def test_a_thousand_creates_and_deletes_leave_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, __name__.partition(".")[0])
    cycles = int(os.environ.get("LEAK_CYCLES", LONG))
    async with model_server() as model, receiver(tmp_path) as webhooks:
        for name, value in model.environ.items():
            monkeypatch.setenv(name, value)
        settings = {
            "DELETION_GRACE_SECONDS": "1",
            "MYSQLD": os.environ.get("SOAK_MYSQLD", ""),
            "POOL_SIZE": str(POOL),
            "NL_MODEL": MODEL,
            "WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8",
            "WEBHOOK_CA_FILE": str(webhooks.ca_file),
        }
        async with live_stack(tmp_path / "home", **settings) as stack:
            async with client_of(stack) as client:
                await client.send("POST", "/webhook_endpoints", body={"url": webhooks.url(), "events": []})
            before, after = await _around(stack, warm_up=cycles // 2, cycles=cycles, asked=ASKED)
            counts = await stack.control("SELECT status, count(*) FROM webhook_deliveries GROUP BY status")
            questions = await stack.control("SELECT count(*) FROM query_executions WHERE outcome = 'succeeded'")
        log.info("deliveries: %s, questions: %s", dict(counts), questions[0]["count"])
        assert [row["status"] for row in counts] == ["delivered"]
        assert questions[0]["count"] > 0
    _check(before, after)


async def _around(
    stack: LiveStack, *, warm_up: int, cycles: int, asked: int | None = None
) -> tuple[Holdings, Holdings]:
    """What was held after the first ones, and after all."""
    await _cycles(stack, warm_up, asked)
    before = await holdings(stack)
    started = time.monotonic()
    await _cycles(stack, cycles, asked)
    after = await holdings(stack)
    log.info("%s creates and deletes in %.0f s", cycles, time.monotonic() - started)
    log.info("before: %s", before)
    log.info("after:  %s", after)
    return before, after


async def _cycles(stack: LiveStack, count: int, asked: int | None) -> None:
    """Each makes a database, sees it active, and deletes it; then all come to rest. One of so many is asked a question
    in between."""
    slots, ledger = asyncio.Semaphore(AT_ONCE), Ledger()

    async def one(client: PatientClient, engine: str, *, ask: bool) -> None:
        async with slots:
            database = await create(client, ledger, engine, wait=30)
            if ask:
                body = {"database_uuid": database, "query": script(sql("SELECT 1"))}
                assert (await client.send("POST", "/query_executions", body=body)).status == 200
            await delete(client, ledger, database)

    async with client_of(stack) as client:
        engines = enumerate(islice(cycle(ENGINES), count))
        # By pairs, or it would be the same engine each time.
        await asyncio.gather(
            *(one(client, engine, ask=asked is not None and number // 2 % asked == 0) for number, engine in engines)
        )
        assert not client.strange
    await settled(stack)
    await until(lambda: _is_full(stack), timeout=120)
    await settled(stack)


async def _is_full(stack: LiveStack) -> bool:
    """The warm pools are back at their size."""
    members = await stack.control("SELECT count(*) FROM databases WHERE team_id IS NULL AND status = 'active'")
    wanted = await stack.control("SELECT sum(coalesce(size, setting)) FROM pool_targets")
    return bool(members[0]["count"] == (wanted[0]["sum"] or 0))


def _check(before: Holdings, after: Holdings) -> None:
    # Members of a pool are others each time.
    assert _kinds(after) == _kinds(before)
    assert after.workflows == []
    assert after.folders == before.folders
    for host, files in after.files.items():
        assert files <= before.files[host] + SPARE_FILES, host
    for name, sessions in after.sessions.items():
        assert sessions <= before.sessions[name] + SPARE_SESSIONS, name
    # Each is an open file too, of the process whose it is.
    more_sessions = max(0, sum(after.sessions.values()) - sum(before.sessions.values()))
    for part, open_files in after.open_files.items():
        assert open_files <= before.open_files[part] + SPARE_FILES + more_sessions, part
    for part, memory in after.memory.items():
        assert memory <= before.memory[part] + SPARE_MEMORY, part


def _kinds(held: Holdings) -> Counter[str]:
    return Counter(entry.rpartition(" ")[0] + " of a helper" * entry.endswith("_ro") for entry in held.objects)
