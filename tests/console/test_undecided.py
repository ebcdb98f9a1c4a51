"""Answers that don't say what became of a change: the page goes on with its Idempotency-Key, by itself or when somebody
presses again, so that it is done once and what it gives is shown. By the keyboard alone."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Locator, Page, Request, Route, expect

from app.store.session import execute, fetch
from tests.console.accessible import check_accessible
from tests.console.browser import Visit
from tests.console.keyboard import press, write
from tests.console.steps import begin, do, made
from tests.support.answers import data_of
from tests.support.store import store
from tests.support.waiting import until

WAITING = "The first attempt is still under way"
UNDER_WAY = "idempotency_key_in_progress"
UNDECIDED = {"rate_limit_exceeded": 429, "insufficient_role": 403, UNDER_WAY: 409}
DECIDED = {"invalid_field": 422, "last_owner": 409, "not_found": 404}
_COMMITTED = "SELECT 1 FROM idempotency_keys WHERE key = $1 AND resource IS NOT NULL"
_LEASE = "UPDATE idempotency_keys SET locked_until = now() + make_interval(hours => $2) WHERE key = $1"
"""Of a process that has died; 0 is over."""


async def test_a_password_that_was_begun_by_an_api_that_died(visit: Visit) -> None:
    """It is killed while it waits for the engine; the next one takes the request for under way, until the lease of the
    first one is over."""
    service, page, caller = visit.console.service, visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    keys = keys_of(page, "/users")
    visit.watch.expect_losses()
    visit.watch.expect(409)
    await visit.open(f"/databases/{database['uuid']}/users")
    dialog = await begin(page, "New user")
    await write(dialog.get_by_label("Name"), "reporting")
    async with store(service.control_dsn):
        async with service.frozen("worker"):
            await press(dialog.get_by_role("button", name="Make the user"))
            await until(lambda: keys)
            await until(lambda: fetch(_COMMITTED, keys[0]))
            await service.kill("api")
            try:
                await execute(_LEASE, keys[0], 1)
                await expect(page.locator(".connection")).to_contain_text("Connection lost")
            finally:
                await service.start_stopped()
            await expect(page.locator(".connection")).to_contain_text(WAITING)
            await check_accessible(page)
        await execute(_LEASE, keys[0], 0)
    await dialog.get_by_text("Keep it now: it isn't shown here again.").wait_for()
    await expect(page.locator(".connection")).to_have_count(0)
    assert len(set(keys)) == 1
    (user,) = data_of(await caller.get(f"/databases/{database['uuid']}/users"))
    await expect(dialog.locator("dd code").first).to_have_text(user["db_username"])


def keys_of(page: Page, path: str) -> list[str]:
    """The Idempotency-Keys of what the page asks to have done there, as it goes."""
    keys: list[str] = []

    def note(asked: Request) -> None:
        if asked.method == "POST" and asked.url.endswith(path):
            keys.append(asked.headers["idempotency-key"])

    page.on("request", note)
    return keys


async def test_the_key_stays_until_an_answer_decides(visit: Visit) -> None:
    """An attempt whose answer was lost may be followed by one that is refused for a while: the first one's answer is to
    be had with its key alone. What is decided begins anew."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    visit.watch.expect(*UNDECIDED.values(), *DECIDED.values())
    keys = keys_of(page, "/teams")
    # It gives up waiting after a minute.
    await page.clock.install()
    await visit.open("/teams")
    await press(page.get_by_role("button", name="New team"))
    dialog = page.get_by_role("dialog")
    await write(dialog.get_by_label("Name"), "Patient")
    for code, status in (UNDECIDED | DECIDED).items():
        await page.route("**/api/v1/teams", refusing(status, code))
        await press(dialog.get_by_role("button", name="Make the team"))
        while not await dialog.locator(".error-note").get_by_text(code).count():
            await page.clock.fast_forward(5000)
        await page.unroute("**/api/v1/teams")
        if code == UNDER_WAY:
            assert len(keys) > len(UNDECIDED), "it asks again by itself"
            assert len(set(keys)) == 1
    assert [keys.count(key) for key in dict.fromkeys(keys)][1:] == [1, 1], "each is another change's after the first"
    await expect(page.locator(".connection")).to_have_count(0)
    await check_accessible(page)
    await press(dialog.get_by_role("button", name="Make the team"))
    await page.get_by_role("heading", name="Patient", level=1).wait_for()
    assert len(set(keys)) == len(DECIDED) + 1
    assert [one["name"] for one in data_of(await caller.get("/teams"))].count("Patient") == 1


@pytest.mark.parametrize(("hours", "teams"), [(1, 1), (3, 2)])
async def test_the_key_outlives_its_dialog(visit: Visit, hours: int, teams: int) -> None:
    """Who closes it, and asks for the same again, asks for the first attempt's answer; much later it is another one."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    visit.watch.expect(503)
    keys = keys_of(page, "/teams")
    await page.clock.install()
    await visit.open("/teams")
    dialog = await named(page, "Patient")
    await page.route("**/api/v1/teams", done_but_undecided)
    await press(dialog.get_by_role("button", name="Make the team"))
    await dialog.locator(".error-note").get_by_text("host_unavailable").wait_for()
    await page.unroute("**/api/v1/teams")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.clock.fast_forward(hours * 3_600_000)
    await named(page, "Patient")
    await press(dialog.get_by_role("button", name="Make the team"))
    await page.get_by_role("heading", name="Patient", level=1).wait_for()
    assert (len(keys), len(set(keys))) == (2, teams)
    assert [one["name"] for one in data_of(await caller.get("/teams"))].count("Patient") == teams
    # It is decided: the same again is another one.
    await press(page.get_by_role("link", name="Teams", exact=True).first)
    await named(page, "Patient")
    await press(dialog.get_by_role("button", name="Make the team"))
    await page.get_by_role("heading", name="Patient", level=1).wait_for()
    assert (len(keys), len(set(keys))) == (3, teams + 1)


async def named(page: Page, name: str) -> Locator:
    """The dialog of a new team."""
    dialog = await begin(page, "New team")
    await write(dialog.get_by_label("Name"), name)
    return dialog


async def done_but_undecided(route: Route) -> None:
    await route.fetch(headers=route.request.headers | {"Sec-Fetch-Site": "same-origin"})
    error = {"code": "host_unavailable", "message": "Not now."}
    await route.fulfill(status=503, json={"error": error, "request_id": "req_undecided"})


async def test_a_change_that_was_undone_is_another_one(visit: Visit) -> None:
    """Although the first attempt at it was never decided: its answer would say what is no longer so."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    visit.watch.expect(503)
    await visit.open(f"/databases/{database['uuid']}")
    dialog = await begin(page, "Pause")
    await page.route("**/api/v1/databases/*/pauses", done_but_undecided)
    await press(dialog.get_by_role("button", name="Pause", exact=True))
    await dialog.locator(".error-note").get_by_text("host_unavailable").wait_for()
    await page.unroute("**/api/v1/databases/*/pauses")
    await page.keyboard.press("Escape")
    await do(page, "Resume")
    await do(page, "Pause")
    assert data_of(await caller.get(f"/databases/{database['uuid']}"))["status"] == "paused"


def refusing(status: int, code: str) -> Callable[[Route], Awaitable[None]]:
    answer = {"error": {"code": code, "message": "Not now."}, "request_id": "req_refused"}

    async def handle(route: Route) -> None:
        if route.request.method == "GET":
            return await route.continue_()
        return await route.fulfill(status=status, json=answer)

    return handle
