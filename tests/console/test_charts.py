"""Charts of a database: measurements as lines, times without any as gaps, and the numbers as a table."""

import re
from uuid import UUID

from playwright.async_api import expect

from app.contracts.upkeep import ScheduleId
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press
from tests.console.steps import made, sampled, without

NOTE_DRAWN = """
window.drawn = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  drawn.push(text);
  return fillText.call(this, text, ...rest);
};
"""


async def test_gaps_are_no_lines(console: Console, visit: Visit) -> None:
    # Else a measurement of the worker's may come between.
    async with without(console, ScheduleId.ENFORCE_QUOTAS):
        database = await made(visit)
        await sampled(console.service, UUID(database["uuid"]))
        await visit.context.add_init_script(NOTE_DRAWN)
        page = await visit.open(f"/databases/{database['uuid']}/charts?span=3600")
        charts = page.get_by_role("figure")
        await expect(charts).to_have_count(3)
        await expect(charts.locator("canvas")).to_have_count(3)
        connections = charts.filter(has_text="Connections")
        await press(connections.get_by_text("Connections as a table"))
        values = await connections.locator("tbody td.number").all_inner_texts()
        assert values == ["1", "2", "3", "\N{EN DASH}", "7"]
        await expect(connections.locator("tbody time").first).to_have_attribute("title", re.compile(" UTC$"))
        # Its point is that of a whole minute, and time goes on.
        await expect(page.locator("main")).to_contain_text(re.compile(r"Measured [3-9] min( \d+ s)? ago\."))
        # Axes are in whole connections, and in bytes by powers of two.
        drawn = await page.evaluate("window.drawn")
        assert "1 MB" in drawn
        assert [one for one in drawn if re.fullmatch(r"\d+\.\d+( \w+)?", one)] == []
        # What the pointer is at, in the reader's zone and in UTC.
        await connections.locator(".u-over").hover()
        await expect(connections.locator(".u-legend")).to_contain_text(re.compile(r"\d\d:\d\d:00 UTC"))
        await page.get_by_role("heading", name="Gaps").wait_for()
        await check_accessible(page)
        await choose(page.get_by_label("Time", exact=True), "604800")
        await page.wait_for_url("**span=604800")
        await press(page.get_by_role("link", name="Overview"))
        await page.get_by_text("976.6 KB of 512 MB").wait_for()
        await page.get_by_text("7 of 10", exact=True).wait_for()
