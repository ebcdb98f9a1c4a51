"""What holds of every page while it reads, when nothing can be read, and when there is nothing yet; and what the
system's own colours and a wish for less motion change. Dialogs and what is full: `test_every_page.py`."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import press
from tests.console.reachable import check_targets
from tests.console.routes import routes
from tests.console.steps import made
from tests.console.test_every_page import FOLLOW
from tests.console.world import World
from tests.support.answers import data_of

API = "**/api/v1/**"
BROKEN = {"error": {"code": "internal_error", "message": "Something broke."}, "request_id": "req_broken"}
READ_NOTHING = {"/databases/new", "/blueprints/new", "/invitations", "/keys/new", "/sign-in", "/webhooks/new"}
"""Pages that are there without an answer of the API."""
EMPTY = {
    "/": "New database",
    "/databases": "New database",
    "/databases/deleted": "grace period",
    "/backups": "Open a database",
    "/operations": "none is like this",
    "/blueprints": "Write one",
    "/questions": "Choose a database and ask",
    "/webhooks": "HTTPS address",
    "/account": "With a passkey",
    "/usage": "from their first hour on",
}
"""What a page says first to somebody who has nothing."""


async def follow(page: Page, address: str) -> None:
    """As a click on a link leads there. Whatever it reads, its heading is there."""
    await page.evaluate(FOLLOW, f"/console{address}")
    await page.locator("main h1").wait_for()


@pytest.mark.soak
async def test_every_page_while_it_reads(console: Console, world: World) -> None:
    async with console.person(world.owner) as visit:
        page = await visit.open("/sign-in")
        # Nobody answers.
        await page.route(API, lambda _: None)
        for route in routes():
            await follow(page, world.address(route))
            if route not in READ_NOTHING:
                reads = page.locator("main [aria-busy=true], main option:text-is('Loading…')")
                assert await reads.count(), f"{route} doesn't say that it reads"
            await check_accessible(page)
            await check_targets(page)


@pytest.mark.soak
async def test_every_page_that_can_read_nothing(console: Console, world: World) -> None:
    async with console.person(world.owner) as visit:
        visit.watch.expect(500)
        page = await visit.open("/sign-in")
        await page.route(API, broken)
        for route in routes():
            await follow(page, world.address(route))
            if route not in READ_NOTHING:
                note = page.locator(".error-note, .field-error").first
                await expect(note).to_contain_text("Something broke.")
                if await page.locator(".error-note").count():
                    await expect(page.locator(".error-note").first).to_contain_text("req_broken")
            await check_accessible(page)
            await check_targets(page)


async def broken(route: Route) -> None:
    await route.fulfill(status=500, json=BROKEN)


@pytest.mark.soak
async def test_every_page_of_who_has_nothing(visit: Visit) -> None:
    page = await visit.open("/sign-in")
    for route in routes():
        if ":" in route or route.startswith("/operator"):
            continue
        await follow(page, route)
        await expect(page.locator("main [aria-busy=true]")).to_have_count(0)
        if route in EMPTY:
            await expect(page.locator("main .empty").first).to_contain_text(EMPTY[route])
        await check_accessible(page)


async def test_a_part_that_cannot_be_read(visit: Visit) -> None:
    """It says so beside what is there, and is read again when somebody asks."""
    visit.watch.expect(500)
    database = await made(visit)
    page = visit.page
    await page.route("**/api/v1/**/metrics?*", broken)
    await page.route("**/openapi.json", broken)
    await visit.open(f"/databases/{database['uuid']}")
    note = page.locator(".error-note")
    await note.get_by_text("req_broken").wait_for()
    await check_accessible(page)
    await page.unroute("**/api/v1/**/metrics?*")
    await press(note.get_by_role("button", name="Try again"))
    await page.get_by_text(re.compile("^(Not measured yet|Measured)")).wait_for()
    await expect(note).to_have_count(0)
    await visit.open("/webhooks/new")
    await note.get_by_text("status_500").wait_for()
    await expect(page.get_by_label("All of them")).to_be_disabled()
    await check_accessible(page)
    await page.unroute("**/openapi.json")
    await press(note.get_by_role("button", name="Try again"))
    await press(page.get_by_label("All of them"), "Space")
    await expect(page.get_by_label("database.deleted")).to_be_visible()


async def test_what_takes_longer_than_its_interval_is_waited_for(visit: Visit) -> None:
    """What is read anew each time would never be shown."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    at = f"/databases/{database['uuid']}"
    held: list[str] = []
    others: list[str] = []
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        held.append(route.request.url)
        await released.wait()
        await route.continue_()

    await page.clock.install()
    await visit.open(f"{at}/connect")
    await page.get_by_role("heading", name="orders", level=1).wait_for()
    page.on("request", lambda asked: others.append(asked.url) if "/operations?" in asked.url else None)
    await page.route(f"**/api/v1{at}", hold)
    data_of(await caller.patch(at, {"name": "renamed"}))
    while not held:
        await page.clock.fast_forward(5000)
    others.clear()
    while len(others) < 3:
        await page.clock.fast_forward(5000)
    assert len(held) == 1
    released.set()
    await page.get_by_role("heading", name="renamed", level=1).wait_for()
    await page.unroute_all(behavior="wait")


async def test_more_than_a_page_shows_is_no_total(visit: Visit) -> None:
    line = {"id": "1", "plan": "free", "runtime_seconds": 60, "storage_byte_seconds": "0", "backup_byte_seconds": "0"}
    more = {"data": [line | {"ends_at": None, "open": False}], "has_more": True, "as_of": "2026-11-23T00:00:00Z"}
    await visit.page.route("**/api/v1/usage?*", lambda route: route.fulfill(json=more))
    page = await visit.open("/usage")
    await page.get_by_text("In the first 1 lines (the download has all): 1 min active").wait_for()


async def test_an_address_that_somebody_made_up(visit: Visit) -> None:
    visit.watch.expect(422)
    for address in ("/audit?from=yesterday&to=13", "/usage?month=then&by=nothing", "/operations?type=x"):
        page = await visit.open(address)
        await expect(page.locator("main [aria-busy=true]")).to_have_count(0)
        await expect(page.get_by_role("heading", name="could not be shown")).to_have_count(0)


async def test_a_page_that_cannot_be_drawn(visit: Visit) -> None:
    """It is said in its place, and the ways to others stay."""
    nothing = {"data": [{"uuid": "x"}], "has_more": False}
    await visit.page.route("**/api/v1/operations?*", lambda route: route.fulfill(json=nothing))
    page = await visit.open("/operations")
    await page.get_by_role("heading", name="This page could not be shown").wait_for()
    await check_accessible(page)
    await press(page.get_by_role("link", name="All databases"))
    await expect(page.get_by_role("heading", name="Databases", level=1)).to_be_focused()
    assert visit.watch.faults
    assert all(fault.startswith("error: ") for fault in visit.watch.faults), "the browser's console has it too"
    visit.watch.faults.clear()


MARK = "(one) => getComputedStyle(one, '::before').backgroundColor"
MOVES = "() => document.getAnimations().filter((one) => one.effect.getComputedTiming().activeDuration > 1).length"


async def test_the_systems_own_colours_and_less_motion(visit: Visit) -> None:
    """A status is told from another by its mark's form, where one is by the line around it, and nothing turns."""
    page = await visit.open("/account")
    mark = page.get_by_role("row").filter(has_text="this one").locator(".status")
    await page.emulate_media(forced_colors="active")
    assert await mark.evaluate(MARK) == "rgb(0, 0, 0)"
    await mark.evaluate("(one) => one.classList.replace('good', 'idle')")
    assert await mark.evaluate(MARK) != "rgb(0, 0, 0)"
    await visit.open("/databases")
    current = page.get_by_role("navigation", name="Console").get_by_role("link", name="Databases", exact=True)
    assert await current.evaluate("(one) => getComputedStyle(one).outlineStyle") == "solid"
    await page.emulate_media(forced_colors="null", reduced_motion="reduce")
    await page.route(API, lambda _: None)
    await follow(page, "/webhooks")
    await page.locator("main .spinner").wait_for()
    assert await page.evaluate(MOVES) == 0
    await page.emulate_media(reduced_motion="null")
    assert await page.evaluate(MOVES) > 0
