"""What a page that is open for long keeps in memory, while what it shows changes all the time."""

import asyncio
import logging
import os
import statistics
from itertools import count
from time import monotonic
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page

from app.databases import records as databases
from app.operations import records as operations
from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import OperationProgress
from app.store.session import transaction
from tests.console.browser import Console
from tests.console.steps import made
from tests.support.answers import body_of, data_of
from tests.support.store import store

_log = logging.getLogger(__name__)
MINUTES = float(os.environ.get("CONSOLE_MINUTES", "60"))
LOOKS = 12
"""At what the pages keep, evenly over the time."""
EVERY_SECONDS = 2.0
MORE = 1.1
"""What the last third may have of what the second one had."""


@pytest.mark.soak
async def test_an_hour_of_live_updates(console: Console) -> None:
    """Three pages of one person: the list, a database with an operation that goes on, and that operation's steps. Each
    change of it comes by a stream; the worker stands still, so nothing else changes it."""
    async with console.person() as visit:
        database = await made(visit)
        assert visit.caller is not None
        async with console.service.frozen("worker"):
            body_of(await visit.caller.post(f"/databases/{database['uuid']}/backups", {}), 202)
            (operation,) = [
                one
                for one in data_of(await visit.caller.get(f"/operations?database_uuid={database['uuid']}"))
                if one["type"] == "backup"
            ]
            pages = [
                await _opened(await visit.context.new_page(), address)
                for address in ("/databases", f"/databases/{database['uuid']}", f"/operations/{operation['uuid']}")
            ]
            kept: list[list[dict[str, float]]] = []
            began, changes = monotonic(), count(1)
            for look in range(LOOKS + 1):
                while monotonic() - began < look * 60 * MINUTES / LOOKS:
                    done = next(changes)
                    await _go_on(console, database["uuid"], done)
                    await asyncio.sleep(EVERY_SECONDS)
                kept.append([await _kept(page) for page in pages])
                _log.info("after %d s: %s", monotonic() - began, kept[-1])
            last = next(changes) - 1
            for page in pages[1:]:
                progress = page.locator("progress").first
                assert await progress.evaluate("(one) => one.value") == last, "it shows the last change"
        _check(kept)


async def _opened(page: Page, address: str) -> Page:
    await page.goto(f"/console{address}")
    await page.locator("main h1").wait_for()
    return page


async def _go_on(console: Console, database: str, done: int) -> None:
    async with store(console.service.control_dsn), transaction():
        record = await databases.find_for_update(UUID(database))
        assert record is not None
        (operation,) = await operations.open_on(record.id, (OperationType.BACKUP,))
        progress = OperationProgress(done=done, total=1_000_000, unit="bytes")
        await operations.write(operation, OperationStatus.RUNNING, operation.steps, reason=None, progress=progress)


async def _kept(page: Page) -> dict[str, float]:
    """Megabytes of the heap, elements and listeners, after what nobody holds has gone."""
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = await session.send("Runtime.getHeapUsage")
    counted: dict[str, Any] = await session.send("Memory.getDOMCounters")
    await session.detach()
    return {
        "megabytes": round(used["usedSize"] / 1024**2, 2),
        "elements": counted["nodes"],
        "listeners": counted["jsEventListeners"],
    }


def _check(kept: list[list[dict[str, float]]]) -> None:
    third = len(kept) // 3
    for page in range(len(kept[0])):
        for what in kept[0][page]:
            second, last = (
                statistics.median(one[page][what] for one in part) for part in (kept[third : 2 * third], kept[-third:])
            )
            assert last <= second * MORE, f"{what} of page {page} went from {second} to {last}"
