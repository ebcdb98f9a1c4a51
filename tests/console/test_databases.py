"""The list of databases, and a new one."""

from tests.console.accessible import check_accessible
from tests.console.browser import Visit


async def test_the_first_database(visit: Visit) -> None:
    page = await visit.open("/")
    await page.get_by_text("No databases yet").wait_for()
    await check_accessible(page)
    await page.get_by_role("link", name="New database").click()
    await page.get_by_label("Name").fill("first")
    await check_accessible(page)
    await page.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/console/databases/*-*")
