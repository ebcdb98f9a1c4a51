"""Steps that several tests of the console take."""

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.console.browser import Visit


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
