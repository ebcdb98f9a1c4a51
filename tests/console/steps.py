"""Steps that several tests of the console take, by the keyboard alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Locator, Page, expect

from app.contracts.upkeep import ScheduleId
from app.core.temporal import connect
from app.store.session import execute, fetch
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press, set_moment, write
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

# Each a point of a minute: three in a row, a gap of six minutes, one by itself.
MINUTES_AGO = (12, 11, 10, 3)

both_engines = pytest.mark.parametrize("engine", ["postgres", pytest.param("mysql", marks=pytest.mark.soak)])
"""The pages are the same, and tests of the API have both: MySQL is for the long form."""
SAMPLES = """
INSERT INTO metric_samples (database_id, at, storage_bytes, connections, transactions)
SELECT $1, date_trunc('minute', now()) - make_interval(mins => minutes), 1000000, connections, 5
FROM unnest($2::integer[], $3::integer[]) AS s (minutes, connections)
"""
"""In one statement: they are minutes before one moment."""
READING = """
INSERT INTO metric_readings (database_id, first_at, read_at, place, began, storage_bytes, connections, transactions)
SELECT $1, min(at), max(at), '', '', 1000000, 7, 20 FROM metric_samples WHERE database_id = $1
ON CONFLICT DO NOTHING
"""


@asynccontextmanager
async def without(console: Console, schedule: ScheduleId) -> AsyncIterator[None]:
    """For the block no run of the Schedule begins, and none is under way."""
    client = await connect(console.service.temporal.address, console.service.namespace)
    handle = client.get_schedule_handle(schedule.value)

    async def rests() -> bool:
        found = await handle.describe()
        return found.schedule.state.paused and not found.info.running_actions

    await handle.pause()
    try:
        await until(rests)
        yield
    finally:
        await handle.unpause()


async def made(visit: Visit, **fields: Any) -> dict[str, Any]:
    """An active database of the visitor's: the data of its create's answer."""
    assert visit.caller is not None
    return await visit.caller.created("orders", **fields)


async def begin(page: Page, action: str) -> Locator:
    """The dialog of an action."""
    await press(page.locator("main").get_by_role("button", name=action, exact=True).first)
    dialog = page.get_by_role("dialog")
    await dialog.wait_for()
    await check_width(dialog)
    return dialog


async def check_width(dialog: Locator) -> None:
    """What a dialog says is all in sight: nothing of it ends behind its right edge."""
    assert await dialog.evaluate("(one) => one.scrollWidth <= one.clientWidth"), await dialog.inner_text()


async def do(page: Page, action: str, confirm: str | None = None, **fields: str) -> None:
    """An action with what is filled in, until its dialog has closed. The focus is then where it was, or near."""
    dialog = await begin(page, action)
    await fill(dialog, **fields)
    await press(dialog.get_by_role("button", name=confirm or action, exact=True))
    await expect(dialog).to_have_count(0)
    await page.wait_for_function("() => document.activeElement !== document.body")


async def fill(place: Locator, **fields: str) -> None:
    """Fields by their labels, with `_` for a space. Of a choice: the option's label."""
    for label, value in fields.items():
        field = place.get_by_label(label.replace("_", " ")).first
        kind = await field.evaluate("(one) => one.type")
        if kind == "select-one":
            await choose(field, value)
        elif kind == "datetime-local":
            await set_moment(field, value)
        else:
            await write(field, value)


async def sampled(service: RunningService, database: UUID) -> None:
    """Measurements of it, as the measuring writes them."""
    async with store(service.control_dsn):
        (number,) = await fetch("SELECT id FROM databases WHERE uuid = $1", database)
        await execute(SAMPLES, number["id"], MINUTES_AGO, (1, 2, 3, 7))
        await execute(READING, number["id"])
