"""The list of databases, and a new one."""

import asyncio
import json
import os
import re

import pytest
from playwright.async_api import Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import NARROW, Console, Visit
from tests.console.keyboard import choose, press, set_moment, write
from tests.console.steps import made
from tests.support.answers import body_of, data_of


async def test_the_first_database_and_the_filters_of_the_list(visit: Visit) -> None:
    assert visit.caller is not None
    page = await visit.open("/")
    await page.get_by_text("No databases yet").wait_for()
    await check_accessible(page)
    await press(page.get_by_role("link", name="New database"))
    await expect(page.get_by_role("heading", name="New database")).to_be_focused()
    await expect(page).to_have_title("New database · Headwater")

    await write(page.get_by_label("Name"), "first")
    await press(page.get_by_text("Limits, labels"))
    await write(page.get_by_label("Labels"), "env:production\nowner:core")
    await check_accessible(page)
    await press(page.get_by_role("button", name="Create database"))
    await page.wait_for_url(re.compile(r"/console/databases/[0-9a-f]{8}-"))

    page = await visit.open("/databases?label=env:production")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="first"))
    await expect(row).to_contain_text("active")
    await expect(row).to_contain_text("owner:core")
    await check_accessible(page)
    await write(page.get_by_label("Name begins with"), "second")
    await page.get_by_text("No database fits").wait_for()
    assert "name=second" in page.url
    await check_accessible(page)
    await press(page.get_by_role("button", name="Clear"))
    await expect(row).to_be_visible()
    await choose(page.get_by_label("Engine"), "mysql")
    await page.get_by_text("No database fits").wait_for()
    await choose(page.get_by_label("Engine"), "postgres")
    (database,) = data_of(await visit.caller.get("/databases"))
    body_of(await visit.caller.post(f"/databases/{database['uuid']}/pauses", None))
    await choose(page.get_by_label("Status"), "paused")
    await page.set_viewport_size(NARROW)
    await expect(row).to_contain_text(re.compile("paused.*by the team", re.DOTALL))
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("end", ["2020-01-01T11:00", "20300-01-01T11:00"])
async def test_a_create_that_is_refused_says_why(visit: Visit, end: str) -> None:
    """Its end is in the past, or in a year that no date has."""
    visit.watch.expect(422)
    page = await visit.open("/databases/new")
    await write(page.get_by_label("Name"), "too-late")
    await press(page.get_by_text("Limits, labels"))
    await set_moment(page.get_by_label("Expires at"), end)
    await press(page.get_by_role("button", name="Create database"))
    note = page.locator(".error-note")
    await expect(note).to_contain_text("invalid_field")
    await expect(note).to_contain_text("req_")
    await expect(page.get_by_label("Expires at")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Name")).to_have_value("too-late")
    await check_accessible(page)


async def test_the_curl_does_the_same(visit: Visit) -> None:
    page = await visit.open("/databases/new")
    await write(page.get_by_label("Name"), "by-curl")
    await press(page.get_by_text("Limits, labels"))
    await write(page.get_by_label("Labels"), "note:it's $HOME")
    await press(page.get_by_text("The same with curl"))
    command = await page.locator(".curl pre").inner_text()
    assert f"{visit.console.origin}/api/v1/databases" in command
    assert "Idempotency-Key: " in command
    assert visit.caller is not None
    environment = {"PATH": os.environ["PATH"], "HEADWATER_API_KEY": visit.caller.api_key}
    made = await asyncio.create_subprocess_shell(command, env=environment, stdout=asyncio.subprocess.PIPE)
    answer = json.loads((await made.communicate())[0])
    assert (answer["data"]["name"], answer["data"]["labels"]) == ("by-curl", {"note": "it's $HOME"})


@pytest.mark.parametrize(("status", "code", "kept"), [(422, "search_too_wide", 1), (404, "not_found", 0)])
async def test_a_refused_next_page_is_said(visit: Visit, status: int, code: str, kept: int) -> None:
    """The last row is not what is wrong: it stays, unless the person may see nothing of the list any more."""
    await made(visit)
    visit.watch.expect(status)

    async def answer(route: Route) -> None:
        if "starting_after" in route.request.url:
            refused = {"error": {"code": code, "message": "Refused."}, "request_id": "req_refused"}
            await route.fulfill(status=status, json=refused)
            return
        first = await route.fetch()
        await route.fulfill(json=await first.json() | {"has_more": True})

    await visit.page.route("**/api/v1/databases?*", answer)
    page = await visit.open("/databases")
    await page.locator(".error-note").get_by_text(code).wait_for()
    await expect(page.get_by_role("row").filter(has_text="orders")).to_have_count(kept)
    await page.unroute_all(behavior="wait")


async def test_without_a_session_there_is_the_sign_in(console: Console) -> None:
    async with console.visitor() as visit:
        page = await visit.open("/databases")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await check_accessible(page)
