"""Charts of a database: measurements as lines, times without any as gaps, and the numbers as a table."""

from uuid import UUID

from playwright.async_api import expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press
from tests.console.steps import made, sampled


async def test_gaps_are_no_lines(console: Console, visit: Visit) -> None:
    database = await made(visit)
    await sampled(console.service, UUID(database["uuid"]))
    page = await visit.open(f"/databases/{database['uuid']}/charts?span=3600")
    charts = page.get_by_role("figure")
    await expect(charts).to_have_count(3)
    await expect(charts.locator("canvas")).to_have_count(3)
    connections = charts.filter(has_text="Connections")
    await press(connections.get_by_text("Connections as a table"))
    values = await connections.locator("tbody td.number").all_inner_texts()
    assert values == ["1", "2", "3", "\N{EN DASH}", "7"]
    await page.get_by_role("heading", name="Gaps").wait_for()
    await check_accessible(page)
    await choose(page.get_by_label("Time", exact=True), "604800")
    await page.wait_for_url("**span=604800")
