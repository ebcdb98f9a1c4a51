"""Creates and deletes leave nothing behind: no database, login, session, file or open workflow, and no memory.

The longer form, with -m soak, makes 1,000 databases; `LEAK_CYCLES` sets another number.
"""

import asyncio
import logging
import os
import time
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES, Ledger, create, delete
from tests.e2e.leaks import Holdings, holdings
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.stack import LiveStack, live_stack

log = logging.getLogger(__name__)

AT_ONCE = 8
SHORT, LONG = 24, 1000
SPARE_FILES = 12
"""Open files and sessions that a pool of connections may hold more at one time than at another."""
SPARE_MEMORY = 16
"""MiB. What allocators and caches take while they warm up; a leak of 20 KiB a database shows in the longer form."""


async def test_a_few_creates_and_deletes_leave_nothing(stack: LiveStack) -> None:
    before, after = await _around(stack, warm_up=SHORT, cycles=SHORT)
    _check(before, after)


@pytest.mark.soak
async def test_a_thousand_creates_and_deletes_leave_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, __name__.partition(".")[0])
    cycles = int(os.environ.get("LEAK_CYCLES", LONG))
    settings = {"DELETION_GRACE_SECONDS": "1", "MYSQLD": os.environ.get("SOAK_MYSQLD", "")}
    async with live_stack(tmp_path / "home", **settings) as stack:
        before, after = await _around(stack, warm_up=cycles // 2, cycles=cycles)
    _check(before, after)


async def _around(stack: LiveStack, *, warm_up: int, cycles: int) -> tuple[Holdings, Holdings]:
    """What was held after the first ones, and after all."""
    await _cycles(stack, warm_up)
    before = await holdings(stack)
    started = time.monotonic()
    await _cycles(stack, cycles)
    after = await holdings(stack)
    log.info("%s creates and deletes in %.0f s", cycles, time.monotonic() - started)
    log.info("before: %s", before)
    log.info("after:  %s", after)
    return before, after


async def _cycles(stack: LiveStack, count: int) -> None:
    """Each makes a database, sees it active, and deletes it; then all come to rest."""
    slots, ledger = asyncio.Semaphore(AT_ONCE), Ledger()

    async def one(client: PatientClient, engine: str) -> None:
        async with slots:
            await delete(client, ledger, await create(client, ledger, engine, wait=30))

    async with client_of(stack) as client:
        await asyncio.gather(*(one(client, engine) for engine in islice(cycle(ENGINES), count)))
        assert not client.strange
    await settled(stack)


def _check(before: Holdings, after: Holdings) -> None:
    assert after.objects == before.objects
    assert after.workflows == []
    assert after.folders == before.folders
    for host, files in after.files.items():
        assert files <= before.files[host] + SPARE_FILES, host
    for name, sessions in after.sessions.items():
        assert sessions <= before.sessions[name] + SPARE_FILES, name
    for part, open_files in after.open_files.items():
        assert open_files <= before.open_files[part] + SPARE_FILES, part
    for part, memory in after.memory.items():
        assert memory <= before.memory[part] + SPARE_MEMORY, part
