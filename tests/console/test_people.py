"""Keys, teams, invitations, the audit log and usage, as people meet them in a browser."""

import re
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from app.store.session import fetch
from tests.console.accessible import check_accessible
from tests.console.browser import NARROW, Console, Visit
from tests.console.keyboard import choose, press, set_moment, write
from tests.console.steps import begin, fill
from tests.console.test_leaving import LOOK_AGAIN
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.store import store
from tests.support.waiting import until

EVIL = """<img src=x onerror="document.body.dataset.owned=1"><script>alert(1)</script>'"&"""
"""As a name: a browser that takes it for markup tells on itself, by the request and by the policy's report."""


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


async def act(page: Page, button: str, confirm: str, **fields: str) -> None:
    """An action's dialog, looked at on the way."""
    dialog = await begin(page, button)
    await fill(dialog, **fields)
    await check_accessible(page)
    await press(dialog.get_by_role("button", name=confirm, exact=True))
    await expect(dialog).to_have_count(0)
    await page.wait_for_function("() => document.activeElement !== document.body")


async def rename(console: Console, caller: Caller, name: str) -> None:
    async with store(console.service.control_dsn):
        await fetch("UPDATE users SET name = $2 WHERE id = $1", caller.user_id, name)


async def test_a_key_from_its_making_to_its_end(visit: Visit) -> None:
    page = await visit.open("/keys")
    await press(page.get_by_role("link", name="New key"))
    await write(page.get_by_label("Name"), EVIL)
    await press(page.get_by_label("databases:write"), "Space")
    await set_moment(page.get_by_label("Expires"), "2040-01-31T11:00")
    await press(page.get_by_text("Networks, databases and limits"))
    await write(page.get_by_label("Networks"), "127.0.0.0/8 ::1/128")
    await check_accessible(page)
    await press(page.get_by_role("button", name="Make the key"))
    shown = page.locator(".once code")
    await expect(shown).to_have_text(re.compile("^pk_live_"))
    text = await shown.inner_text()
    await check_accessible(page)
    assert visit.caller is not None
    key = Caller(visit.caller.http, text, visit.caller.user_id, visit.caller.team_id, 0)
    me = data_of(await key.get("/me"))["api_key"]
    assert (me["name"], me["permissions"]) == (EVIL, ["databases:read", "databases:write"])
    assert me["controls"]["allowed_ip_list"] == ["127.0.0.0/8", "::1/128"]
    await press(page.get_by_role("button", name="I have saved it"))
    await page.wait_for_url(re.compile(r"/keys/\d+$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text(EVIL)
    assert text not in await page.content()
    assert text not in await page.evaluate(
        "() => JSON.stringify([{...localStorage}, {...sessionStorage}, history.state])"
    )
    await check_accessible(page)
    await act(page, "Change", "Save", Name="nightly")
    await expect(page.get_by_role("heading", level=1)).to_have_text("nightly")
    await act(page, "Replace its text", "Replace")
    renewed = await page.locator(".once code").inner_text()
    assert renewed != text
    await press(page.get_by_role("button", name="I have saved it"))
    for one in (text, renewed):
        data_of(await Caller(key.http, one, 0, 0, 0).get("/me"))
    await act(page, "Revoke", "Revoke", Type_nightly_to_confirm="nightly")
    await expect(page.locator(".heading .status")).to_have_text("revoked")
    assert (await key.get("/me")).status_code == 403
    await press(page.get_by_role("link", name="API keys").first)
    await page.get_by_role("link", name="nightly").wait_for()
    await check_accessible(page)


async def test_a_key_that_is_refused_says_why(visit: Visit) -> None:
    visit.watch.expect(422)
    page = await visit.open("/keys/new")
    await write(page.get_by_label("Name"), "bad")
    await press(page.get_by_text("Networks, databases and limits"))
    await write(page.get_by_label("Networks"), "nowhere")
    await press(page.get_by_role("button", name="Make the key"))
    note = page.locator(".error-note")
    await expect(note).to_contain_text("invalid_field")
    await expect(note).to_contain_text("req_")
    await expect(page.locator(".field-error")).to_contain_text("nowhere")
    await check_accessible(page)


async def test_a_change_of_a_key_undoes_nothing_of_others(visit: Visit) -> None:
    """What is changed elsewhere while its dialog is open, and read meanwhile, stays."""
    caller = visit.caller
    assert caller is not None
    scopes = ["databases:read", "databases:write"]
    made = data_of(await caller.post("/api_keys", {"name": "before", "permissions": scopes}), 201)
    at = f"/api_keys/{made['id']}"
    page = await visit.open(f"/keys/{made['id']}")
    opened = await begin(page, "Change")
    await press(opened.get_by_label("databases:write"), "Space")
    data_of(await caller.patch(at, {"name": "after"}))
    await page.evaluate(LOOK_AGAIN)
    await expect(page.locator("h1")).to_have_text("after")
    await press(opened.get_by_role("button", name="Save"))
    await expect(opened).to_have_count(0)
    changed = data_of(await caller.get(at))
    assert (changed["name"], changed["permissions"]) == ("after", ["databases:read"])


async def test_a_key_whose_end_is_no_date_is_not_made(visit: Visit) -> None:
    """A field for a date takes years of five digits: it would be a key that never ends."""
    visit.watch.expect(422)
    page = await visit.open("/keys/new")
    await write(page.get_by_label("Name"), "short-lived")
    await set_moment(page.get_by_label("Expires"), "20400-01-31T11:00")
    await press(page.get_by_role("button", name="Make the key"))
    await expect(page.locator(".error-note")).to_contain_text("invalid_field")
    await expect(page.get_by_label("Expires")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Name")).to_have_value("short-lived")


async def test_a_team_and_an_invitation(console: Console, visit: Visit) -> None:
    """By two people with a keyboard alone: the one makes the team, the other isn't signed in at first."""
    page = await visit.open("/teams")
    await press(page.get_by_role("button", name="New team"))
    await write(dialog(page).get_by_label("Name"), EVIL)
    await press(dialog(page).get_by_role("button", name="Make the team"))
    await page.wait_for_url(re.compile(r"/teams/\d+$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text(EVIL)
    await act(page, "Invite somebody", "Make the link", Role="viewer")
    link = await page.locator(".once code").inner_text()
    await check_accessible(page)
    await press(page.get_by_role("button", name="I have saved it"))
    team = int(page.url.rsplit("/", 1)[1])

    async with console.visitor(viewport=NARROW) as other:
        await other.page.goto(link)
        await other.page.get_by_text("Sign in first").wait_for()
        await expect(other.page.get_by_role("main")).to_contain_text(
            f"invited into {EVIL}. Your role there will be viewer"
        )
        assert "#" not in other.page.url
        await check_accessible(other.page)
        async with other.context.expect_page() as opened:
            await press(other.page.get_by_role("link", name="open the sign-in in another tab"))
        beside = await opened.value
        await beside.get_by_text("headwater users sign-in-link ID").wait_for()
        await beside.close()
        guest = other.caller = await console.service.caller()
        await rename(console, guest, EVIL)
        await other.sign_in(guest)
        await press(other.page.get_by_role("button", name="I have signed in"))
        await press(other.page.get_by_role("button", name="Join the team"))
        await expect(other.page.get_by_role("main")).to_contain_text("Your role there is viewer")
        await check_accessible(other.page)
        await press(other.page.get_by_role("main").get_by_role("link", name=EVIL))
        await expect(other.page.get_by_role("main")).to_contain_text("Only admins and owners")
        await expect(other.page.get_by_role("button", name="Invite somebody")).to_have_count(0)
        await check_accessible(other.page)
        await a_viewer_edits_requests(other, team)
        await other.page.goto("about:blank")
        await other.page.goto(link)
        await other.page.get_by_text("has been accepted").wait_for()
        other.watch.expect(404)
        await other.page.goto("about:blank")
        await other.page.goto(f"{link}x")
        await expect(other.page.locator(".error-note")).to_contain_text("req_")
        await check_accessible(other.page)

        await page.reload()
        row = page.get_by_role("row").filter(has_text=EVIL)
        await expect(row).to_have_count(1)
        await press(row.get_by_role("button", name="Role"))
        await choose(dialog(page).get_by_label("Role"), "admin")
        await press(dialog(page).get_by_role("button", name="Save"))
        await expect(row).to_contain_text("admin")
        await check_accessible(page)
        await other.open(f"/teams/{team}")
        await act(other.page, "Leave", "Leave")
        await other.page.wait_for_url("**/console/teams")

    visit.watch.expect(409)
    await press(page.get_by_role("row").get_by_role("button", name="Leave"))
    await press(dialog(page).get_by_role("button", name="Leave"))
    await expect(dialog(page).locator(".error-note")).to_contain_text("last_owner")
    await check_accessible(page)
    await page.keyboard.press("Escape")
    await press(page.get_by_role("button", name="Rename"))
    await write(dialog(page).get_by_label("Name"), "Given up")
    await page.keyboard.press("Escape")
    await press(page.get_by_role("button", name="Rename"))
    await expect(dialog(page).get_by_label("Name")).to_have_value(EVIL)
    await write(dialog(page).get_by_label("Name"), "Orders")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Orders")
    await act(page, "Delete", "Delete", Type_Orders_to_confirm="Orders")
    await page.wait_for_url("**/console/teams")
    await check_accessible(page)


async def a_viewer_edits_requests(visit: Visit, team: int) -> None:
    """What the page doesn't offer, the API refuses."""
    visit.watch.expect(403)
    for method, path, body in (
        ("POST", f"/teams/{team}/invitations", '{"role": "owner"}'),
        ("DELETE", f"/teams/{team}", None),
        ("POST", "/operator/checks", None),
    ):
        status = await visit.page.evaluate(
            """async ([method, path, body]) => (await fetch("/api/v1" + path, {
                method, body, headers: { "Idempotency-Key": crypto.randomUUID(), "Content-Type": "application/json" },
            })).status""",
            [method, path, body],
        )
        assert status == 403, path


async def _is_metered(caller: Caller) -> bool:
    """The ledger follows what is used by a few seconds."""
    return bool(data_of(await caller.get("/usage")))


async def test_the_audit_log_and_usage(console: Console, visit: Visit, tmp_path: Path) -> None:
    caller = visit.caller
    assert caller is not None
    await rename(console, caller, EVIL)
    data_of(await caller.patch(f"/teams/{caller.team_id}", {"name": EVIL}))
    database = await caller.created("metered")
    page = await visit.open("/audit")
    await write(page.get_by_label("Action"), "team.change")
    await press(page.get_by_role("button", name="Filter"))
    await expect(page.get_by_role("row")).to_have_count(2)
    await expect(page.get_by_role("row").last).to_contain_text(EVIL)
    await check_accessible(page)
    async with page.expect_download() as coming:
        await press(page.get_by_role("button", name="Export as JSON lines"))
    await (await coming.value).save_as(tmp_path / "events.jsonl")
    assert "team.change" in (tmp_path / "events.jsonl").read_text()
    await press(page.get_by_role("button", name="team.change"))
    await expect(dialog(page)).to_contain_text(EVIL)
    await check_accessible(page)
    await page.keyboard.press("Escape")
    await expect(dialog(page)).to_have_count(0)
    visit.watch.expect(422)
    await write(page.get_by_label("Action"), "team.gone")
    await page.keyboard.press("Enter")
    await expect(page.locator(".error-note")).to_contain_text("There is no such action")
    await until(lambda: _is_metered(caller))
    await visit.open("/usage")
    await page.get_by_role("link", name="metered").wait_for()
    await check_accessible(page)
    async with page.expect_download() as coming:
        await press(page.get_by_role("button", name="Download as CSV"))
    await (await coming.value).save_as(tmp_path / "usage.csv")
    assert database["uuid"] in (tmp_path / "usage.csv").read_text()
    assert await page.evaluate("() => document.body.dataset.owned") is None
