"""What holds on each page that there is, in every state that a look at it has: axe finds nothing in light and in dark,
the keyboard reaches everything, windows from 320 px on show everything, texts of others are text, and a viewer is
offered nothing that the API would refuse them."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.reachable import check_keyboard, check_targets, check_windows
from tests.console.routes import routes
from tests.console.steps import check_width
from tests.console.world import World

PARTS = 3
"""Tests that go through the pages, so that several processes do it."""
# What a viewer may press: it shows or reads something, or is the person's own.
FOR_VIEWERS = (
    r"^(Copy .*|Log|Filter|Read again|Try again|Download as CSV|Show more|Another variable|Remove \w+"
    r"|Sign out|Sign out everywhere|End|New key|New team|Leave)$"
)
ENABLED = """
() => [...document.querySelectorAll("main :is(button, a.button)")]
  .filter((one) => !one.disabled && one.checkVisibility()).map((one) => one.textContent.trim())
"""
# What the pages send, and the API refuses to who takes a `disabled` away.
EDITED: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("POST", "/databases", {"name": "x", "team_id": "a team"}),
    ("PATCH", "/databases/:uuid", {"name": "x"}),
    ("DELETE", "/databases/:uuid", None),
    ("POST", "/databases/:uuid/pauses", None),
    ("POST", "/databases/:uuid/users", {"name": "x", "access": "read_only"}),
    ("POST", "/databases/:uuid/credential_rotations", {}),
    ("POST", "/databases/:uuid/backups", {}),
    ("PATCH", "/databases/:uuid/backup_policy", {"keep_days": 1}),
    ("POST", "/databases/:uuid/blueprint_applications", {"blueprint_uuid": "a blueprint"}),
    ("POST", "/query_executions", {"database_uuid": "a database", "query": "SELECT 1"}),
    ("PATCH", "/blueprints/:uuid", {"name": "x"}),
    ("DELETE", "/blueprints/:uuid", None),
    ("POST", "/webhook_endpoints", {"url": "https://example.com/", "team_id": "a team"}),
    ("PATCH", "/webhook_endpoints/:id", {"events": []}),
    ("DELETE", "/webhook_endpoints/:id", None),
    ("POST", "/webhook_endpoints/:id/secret_rotations", None),
    ("POST", "/webhook_endpoints/:id/test_deliveries", None),
    ("PATCH", "/teams/:id", {"name": "x"}),
    ("DELETE", "/teams/:id", None),
    ("POST", "/teams/:id/invitations", {"role": "viewer"}),
    ("GET", "/audit_events", None),
    ("POST", "/operator/checks", None),
    ("POST", "/operator/databases/:uuid/pauses", None),
)
FOLLOW = """
async (to) => {
  history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
  // Until it was drawn.
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
}
"""
SEND = """
async (requests) => Promise.all(requests.map(async ([method, path, body]) => (await fetch("/api/v1" + path, {
  method, body: body && JSON.stringify(body),
  headers: { "Idempotency-Key": crypto.randomUUID(), ...(body && { "Content-Type": "application/json" }) },
})).status))
"""


async def opened(visit: Visit, address: str) -> Page:
    """With all that it reads at first. After the first page as a click on a link leads there, which loads no more than
    the page has of its own."""
    page = visit.page
    if page.url == "about:blank":
        await visit.open(address)
    else:
        await page.evaluate(FOLLOW, f"/console{address}")
    await page.locator("main h1").wait_for()
    await expect(page.locator("main [aria-busy=true]")).to_have_count(0)
    return page


async def check_texts(page: Page) -> None:
    """Names, labels, messages and answers that are markup have become none."""
    assert await page.evaluate("[document.images.length, document.body.dataset.owned ?? null]") == [0, None]


@pytest.mark.parametrize("part", range(PARTS))
async def test_every_page(console: Console, world: World, part: int) -> None:
    async with console.person(world.owner) as visit:
        for route in routes()[part::PARTS]:
            page = await opened(visit, world.address(route))
            await check_accessible(page)
            await check_keyboard(page)
            await check_targets(page)
            await check_windows(page)
            await check_texts(page)


@pytest.mark.soak
async def test_every_dialog(console: Console, world: World) -> None:
    seen: set[str] = set()
    async with console.person(world.owner) as visit:
        for route in routes():
            page = await opened(visit, world.address(route))
            for action in await page.locator("main button[aria-haspopup=dialog]:enabled").all():
                name = await action.inner_text()
                if name not in seen:
                    seen.add(name)
                    await check_dialog(page, name)
    assert len(seen) > 25, seen


@pytest.mark.soak
async def test_what_a_viewer_sees_is_accessible(console: Console, world: World) -> None:
    async with console.person(world.viewer) as visit:
        visit.watch.expect(403, 404)
        for route in routes():
            await check_accessible(await opened(visit, world.address(route)))


async def check_dialog(page: Page, name: str) -> None:
    """Enter opens it, the focus is in it, Escape closes it, and the focus is where it was."""
    action = page.locator("main").get_by_role("button", name=name, exact=True).first
    await action.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await dialog.wait_for()
    assert await dialog.evaluate("(one) => one.contains(document.activeElement)"), name
    await expect(dialog.locator(".curl pre")).to_contain_text("Idempotency-Key: ")
    await check_width(dialog)
    await check_accessible(page)
    await check_keyboard(page, "dialog")
    await check_targets(page)
    await check_texts(page)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(action).to_be_focused()


async def test_a_viewer(console: Console, world: World) -> None:
    async with console.person(world.viewer) as visit:
        # The key is another person's, and the operators' pages are not for a viewer.
        visit.watch.expect(403, 404)
        for route in routes():
            page = await opened(visit, world.address(route))
            buttons = page.locator("main").locator("button, a.button")
            for name in await page.evaluate(ENABLED):
                assert re.match(FOR_VIEWERS, name), f"{route} offers a viewer to {name}"
            for one in await buttons.and_(page.locator("[aria-haspopup=dialog]:disabled")).all():
                assert (await one.get_attribute("title") or "").startswith("Only "), (
                    f"{route}: {await one.inner_text()}"
                )
        requests = [(method, address_of(world, path), filled(world, body)) for method, path, body in EDITED]
        statuses = await visit.page.evaluate(SEND, requests)
        answered = {f"{method} {path}": status for (method, path, _), status in zip(EDITED, statuses, strict=True)}
        assert {what: status for what, status in answered.items() if status != 403} == {}


def address_of(world: World, path: str) -> str:
    """Of the API: of an operator's database as of any."""
    if path.startswith("/operator/"):
        return "/operator" + world.address(path.removeprefix("/operator"))
    return world.address(path)


def filled(world: World, body: dict[str, Any] | None) -> dict[str, Any] | None:
    """What stands for something of the team's is that."""
    own = {
        "a team": world.owner.team_id,
        "a database": world.database["uuid"],
        "a blueprint": world.parts["/blueprints/"]["uuid"],
    }
    return body and {field: own.get(str(value), value) for field, value in body.items()}
