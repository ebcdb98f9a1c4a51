"""Steps that several tests of the console take."""

from typing import Any
from uuid import UUID

from playwright.async_api import Locator, Page, expect

from app.store.session import execute, fetch
from tests.console.browser import Visit
from tests.support.service import RunningService
from tests.support.store import store

# Each a point of a minute: three in a row, a gap of six minutes, one by itself.
MINUTES_AGO = (12, 11, 10, 3)


async def made(visit: Visit, **fields: Any) -> dict[str, Any]:
    """An active database of the visitor's: the data of its create's answer."""
    assert visit.caller is not None
    return await visit.caller.created("orders", **fields)


async def begin(page: Page, action: str) -> Locator:
    """The dialog of an action."""
    await page.get_by_role("button", name=action, exact=True).first.click()
    return page.get_by_role("dialog")


async def do(page: Page, action: str, confirm: str | None = None, **fields: str) -> None:
    """An action with what is filled in, until its dialog has closed."""
    dialog = await begin(page, action)
    for label, value in fields.items():
        await dialog.get_by_label(label.replace("_", " ")).fill(value)
    await dialog.get_by_role("button", name=confirm or action, exact=True).click()
    await expect(dialog).to_have_count(0)


async def sampled(service: RunningService, database: UUID) -> None:
    """Measurements of it, as the measuring writes them."""
    minute = "date_trunc('minute', now()) - make_interval(mins => $2)"
    async with store(service.control_dsn):
        (number,) = await fetch("SELECT id FROM databases WHERE uuid = $1", database)
        for connections, minutes in zip((1, 2, 3, 7), MINUTES_AGO, strict=True):
            await execute(
                "INSERT INTO metric_samples (database_id, at, storage_bytes, connections, transactions)"
                f" VALUES ($1, {minute}, 1000000, $3, 5)",
                number["id"],
                minutes,
                connections,
            )
