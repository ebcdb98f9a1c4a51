"""What holds on every page: losses, the keyboard, names that are markup, long lists."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, Request, Route, expect

from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press, write
from tests.support.service import RunningService
from tests.support.store import store

LOST = "Connection lost, retrying"
# Which of these addresses the page itself goes to.
TAKEN = """
(addresses) => addresses.map((address) => {
  const link = document.body.appendChild(Object.assign(document.createElement("a"), { href: address }));
  let taken;
  const look = (event) => {
    taken = event.defaultPrevented;
    event.preventDefault();
  };
  addEventListener("click", look, { once: true });
  link.click();
  link.remove();
  return taken;
})
"""
TYPED = """
() => {
  const { labels, value, spellcheck } = document.activeElement;
  return { into: labels?.[0]?.textContent, value, focused: document.hasFocus(), spellcheck };
}
"""
# What has the focus when the next key could arrive, which may be before the next picture.
FOCUSED_AFTER = """
(button) => {
  button.click();
  return new Promise((done) => setTimeout(() => done(document.activeElement.textContent.trim())));
}
"""
MARKUP = "<img src=x onerror=alert(1)>"
MANY = 250


@asynccontextmanager
async def rows_of(
    service: RunningService, team_id: int, count: int, labels: tuple[str, ...] = ()
) -> AsyncIterator[None]:
    """Databases that are rows alone, `db-0001` and so on; gone afterwards, for the service would look for them. They
    have what their plan gives, or the service would begin to change it."""
    connections = DEFAULT_PLANS.by_name["free"].limits.connection_hard_limit
    async with store(service.control_dsn):
        await fetch(
            "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
            " connections, labels)"
            " SELECT gen_random_uuid(), $1::bigint, 'db-' || lpad(n::text, 4, '0'), 'postgres', 'us-east-1', 'free',"
            " 'active', (SELECT min(id) FROM engine_hosts), 'x' || $1::bigint || 'n' || n, $4, $3"
            " FROM generate_series(1, $2::int) AS n",
            *(team_id, count, list(labels), connections),
        )
    try:
        yield
    finally:
        async with store(service.control_dsn):
            await fetch("DELETE FROM databases WHERE team_id = $1", team_id)


async def test_a_create_outlives_the_api_and_the_worker(visit: Visit) -> None:
    """Its first answer is lost, then the worker is away, then the API: the page says so, comes back, and there is one
    database."""
    service, page = visit.console.service, visit.page
    assert visit.caller is not None
    visit.watch.expect_losses()
    attempts: list[str] = []
    taken: list[int] = []
    followed: list[str | None] = []
    page.on("request", lambda asked: followed.append(asked.headers.get("last-event-id")) if is_stream(asked) else None)

    async def lose_the_first(route: Route) -> None:
        if route.request.method != "POST":
            return await route.continue_()
        attempts.append(route.request.headers["idempotency-key"])
        if len(attempts) > 1:
            return await route.continue_()
        answer = await route.fetch(headers=route.request.headers | {"Sec-Fetch-Site": "same-origin"})
        taken.append(answer.status)
        return await route.abort("connectionreset")

    await page.route("**/api/v1/databases", lose_the_first)
    await visit.open("/databases/new")
    await write(page.get_by_label("Name"), "only-one")
    await service.kill("worker")
    try:
        await press(page.get_by_role("button", name="Create database"))
        await page.get_by_role("heading", name="Making only-one").wait_for()
        # They are drawn from the stream's first event: without one there is nothing to go on after.
        await page.locator(".steps li").first.wait_for()
        await service.kill("api")
        await expect(page.locator(".connection")).to_contain_text(LOST)
        await check_accessible(page)
    finally:
        await service.start_stopped()
    await page.get_by_role("heading", name="only-one", exact=True).wait_for()
    await expect(page.get_by_text(LOST)).to_have_count(0)
    assert len(attempts) == 2
    assert len(set(attempts)) == 1
    assert taken == [202]
    assert (followed[0], bool(followed[-1])) == (None, True), "the stream goes on after what had come"
    listed = (await visit.caller.get("/databases")).json()["data"]
    assert [item["name"] for item in listed] == ["only-one"]


def is_stream(asked: Request) -> bool:
    return asked.url.endswith("/events")


async def test_the_keyboard_is_enough(visit: Visit) -> None:
    page = await visit.open("/")
    await page.get_by_text("No databases yet").wait_for()
    await page.evaluate("document.activeElement?.blur()")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    await reach(page, "New database")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="New database")).to_be_focused()
    await reach(page, "Name")
    await page.keyboard.type("by-keyboard")
    # On a crowded machine one letter of it was there once, at this point; what is, is shown if the others never come.
    await expect(page.get_by_label("Name", exact=True), str(await page.evaluate(TYPED))).to_have_value("by-keyboard")
    assert await page.evaluate(TYPED) == {"into": "Name", "value": "by-keyboard", "focused": True, "spellcheck": False}
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="by-keyboard", exact=True)).to_be_focused()
    # Where the link stays, too.
    await press(page.get_by_role("navigation", name="Console").get_by_role("link", name="Backups"))
    await expect(page.get_by_role("heading", name="Backups", exact=True)).to_be_focused()


async def test_a_link_to_elsewhere_is_left_to_the_browser(visit: Visit) -> None:
    page = await visit.open("/")
    assert await page.evaluate(TAKEN, ["/console/keys", "https://evil.example/console/keys", "/docs"]) == [
        True,
        False,
        False,
    ]


async def reach(page: Page, name: str) -> None:
    """By the Tab key, to the link, button or field of that name."""
    named = "() => { const a = document.activeElement; return a.labels?.[0]?.textContent ?? a.textContent; }"
    for _ in range(40):
        await page.keyboard.press("Tab")
        if str(await page.evaluate(named)).strip() == name:
            return
    raise AssertionError(f"the Tab key doesn't reach {name}")


async def test_names_and_labels_are_text(visit: Visit) -> None:
    assert visit.caller is not None
    async with rows_of(visit.console.service, visit.caller.team_id, 1, (f"note:{MARKUP}",)):
        page = await visit.open(f"/?label=note:{MARKUP}")
        await expect(page.get_by_text(f"note:{MARKUP}")).to_be_visible()
        await expect(page.get_by_label("Label")).to_have_value(f"note:{MARKUP}")
    await visit.open(f"/{MARKUP}?{MARKUP}")
    assert await page.locator("img").count() == 0


async def test_of_a_long_list_only_what_is_in_sight_is_in_the_page(visit: Visit) -> None:
    assert visit.caller is not None
    async with rows_of(visit.console.service, visit.caller.team_id, MANY):
        page = await visit.open("/")
        rows = page.locator("tr[data-at]")
        await page.get_by_role("link", name=f"db-{MANY:04}").focus()
        while not await page.get_by_role("link", name="db-0001").count():
            await page.keyboard.press("End")
            assert await rows.count() < 100
            await page.wait_for_function("() => document.activeElement.closest('tr')")
        await page.keyboard.press("End")
        await expect(page.get_by_role("link", name="db-0001")).to_be_focused()
        await page.keyboard.press("ArrowUp")
        await expect(page.get_by_role("link", name="db-0002")).to_be_focused()
        await check_accessible(page)
        await page.keyboard.press("Home")
        await expect(page.get_by_role("link", name=f"db-{MANY:04}")).to_be_focused()


async def test_a_dialog_waits_for_what_was_begun_in_it(visit: Visit) -> None:
    """Escape, again and again: what the answer gives, such as a password, is shown nowhere else."""
    page = await visit.open("/teams")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == "POST":
            asked.set()
            await answer.wait()
        await route.continue_()

    await page.route("**/api/v1/teams", hold)
    await press(page.get_by_role("button", name="New team"))
    await write(page.get_by_role("dialog").get_by_label("Name"), "Patient")
    await page.keyboard.press("Enter")
    await asked.wait()
    for _ in range(3):
        await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_visible()
    answer.set()
    await page.get_by_role("heading", name="Patient", level=1).wait_for()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_the_focus_is_back_as_soon_as_a_dialog_is_gone(visit: Visit) -> None:
    """Later it would be taken from whatever somebody has gone on to."""
    page = await visit.open("/teams")
    await press(page.get_by_role("button", name="New team"))
    cancel = page.get_by_role("dialog").get_by_role("button", name="Cancel")
    assert await cancel.evaluate(FOCUSED_AFTER) == "New team"


async def test_a_session_that_ends_shows_the_sign_in(console: Console) -> None:
    async with console.person() as visit:
        visit.watch.expect(401)
        page = await visit.open("/")
        await page.get_by_text("No databases yet").wait_for()
        await visit.context.clear_cookies()
        await press(page.get_by_role("link", name="New database"))
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_the_chosen_theme_stays(visit: Visit) -> None:
    page = await visit.open("/")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await choose(page.get_by_label("Theme"), "Dark")
    dark = await page.evaluate(ground)
    assert dark != light
    await visit.open("/databases/new")
    assert await page.evaluate(ground) == dark
