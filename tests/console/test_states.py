"""What holds of every page while it reads, when nothing can be read, and when there is nothing yet; and what the
system's own colours and a wish for less motion change. Dialogs and what is full: `test_every_page.py`."""

import pytest
from playwright.async_api import Page, Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.reachable import check_targets
from tests.console.routes import routes
from tests.console.test_every_page import FOLLOW
from tests.console.world import World

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
