"""What stays of a person where they have left: the page, the session, or the team."""

from playwright.async_api import expect

from app.store.session import execute
from tests.console.browser import Console, Visit, chromium
from tests.console.keyboard import press
from tests.console.steps import made
from tests.support.answers import data_of
from tests.support.service import RunningService
from tests.support.store import store

# What the page is when the browser shows it again, before anything is loaded.
NOTE = """
() => addEventListener("pageshow", (event) => {
  sessionStorage.kept = event.persisted;
  sessionStorage.seen = document.body.outerHTML;
})
"""
LOOK_AGAIN = "() => document.dispatchEvent(new Event('visibilitychange'))"


async def test_the_back_button_shows_nothing_of_who_has_gone(service: RunningService) -> None:
    """A browser keeps the pages that it leaves, scripts and all."""
    async with chromium(keeping_pages=True) as browser, Console(service, browser).person() as visit:
        database = await made(visit)
        page = await visit.open(f"/databases/{database['uuid']}/connect")
        await press(page.get_by_role("button", name="Show the password"))
        await page.locator("dd code", has_text=database["db_password"]).wait_for()
        await page.evaluate(NOTE)
        # What the next page reads may come after the cookie has gone.
        visit.watch.expect(401)
        await page.goto("/console/keys")
        await visit.context.clear_cookies()
        await page.evaluate("() => history.back()")
        await page.get_by_role("heading", name="Sign in").wait_for()
        kept, seen = await page.evaluate("() => [sessionStorage.kept, sessionStorage.seen]")
        assert kept == "true"
        assert database["db_password"] not in seen
        assert database["name"] not in seen
        await page.evaluate("() => sessionStorage.clear()")


async def test_who_is_removed_from_a_team_sees_no_more_of_it(visit: Visit) -> None:
    """On pages that are open."""
    database = await made(visit)
    visit.watch.expect(403, 404)
    one = await visit.open(f"/databases/{database['uuid']}")
    await one.get_by_role("heading", name="orders", level=1).wait_for()
    assert visit.caller is not None
    operation = data_of(await visit.caller.get(f"/operations?database_uuid={database['uuid']}"))[0]
    (team,) = data_of(await visit.caller.get("/teams"))
    pages = {one: "orders"}
    others = {
        "/databases": "orders",
        f"/operations/{operation['uuid']}": "orders",
        f"/teams/{team['id']}": team["name"],
    }
    for address, shown in others.items():
        page = await visit.context.new_page()
        await page.goto(f"/console{address}")
        await page.get_by_role("main").get_by_text(shown).first.wait_for()
        pages[page] = shown
    async with store(visit.console.service.control_dsn):
        await execute("DELETE FROM memberships WHERE user_id = $1", visit.caller.user_id)
    for page, shown in pages.items():
        await page.evaluate(LOOK_AGAIN)
        await page.locator(".error-note").get_by_text("req_").wait_for()
        await expect(page.get_by_role("main").get_by_text(shown)).to_have_count(0)
