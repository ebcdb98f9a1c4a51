"""The page of one database: what a person sees of it and does to it by the keyboard alone, on both engines."""

import asyncio
import re

from playwright.async_api import Page, Route, expect

from app.store.session import execute
from tests.console.accessible import check_accessible
from tests.console.browser import NARROW, Console, Visit
from tests.console.keyboard import press, write
from tests.console.steps import begin, both_engines, do, made
from tests.console.test_leaving import LOOK_AGAIN
from tests.support.answers import body_of, data_of, error_of
from tests.support.store import store

SCRIPT = '<img src="/nowhere" onerror="document.title = 1">'
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@both_engines
async def test_what_it_is_and_changes_of_it(visit: Visit, engine: str) -> None:
    database = await made(visit, db_type=engine)
    page = await visit.open(f"/databases/{database['uuid']}")
    await page.get_by_text("PostgreSQL" if engine == "postgres" else "MySQL or MariaDB").wait_for()
    await check_accessible(page)

    dialog = await begin(page, "Rename")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Rename")).to_be_focused()
    await begin(page, "Rename")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await write(dialog.get_by_label("Name"), "Not A Name")
    visit.watch.expect(400, 404, 409, 422)
    await press(dialog.get_by_role("button", name="Rename"))
    await dialog.get_by_text(re.compile(r"req_\w+")).first.wait_for()
    await dialog.locator(".error-note code", has_text=re.compile("^[a-z_]+$")).first.wait_for()
    await press(dialog.locator(".curl summary"))
    await expect(dialog.locator(".curl pre")).to_contain_text(re.compile(r"Idempotency-Key: [0-9a-f-]{36}"))
    await check_accessible(page)
    await write(dialog.get_by_label("Name"), "renamed")
    shown = await dialog.locator(".curl pre").inner_text()
    async with page.expect_request(lambda asked: asked.method == "PATCH") as sent:
        await press(dialog.get_by_role("button", name="Rename"))
    assert f"Idempotency-Key: {(await sent.value).headers['idempotency-key']}'" in shown
    await page.get_by_role("heading", name="renamed", level=1).wait_for()

    await do(page, "Edit labels", "Save", Labels=f"env:production\nnote:{SCRIPT}")
    await page.get_by_text(f"note:{SCRIPT}").wait_for()
    await do(page, "Edit labels", "Save", Labels="env:test")
    await expect(page.locator(".label")).to_have_text(["env:test"])

    await do(page, "Change limits", "Change", Connections="7")
    await page.get_by_text("512 MB, 7 connections").wait_for()

    await do(page, "Protect from deletion")
    await page.get_by_text("yes: it can't be deleted").wait_for()
    await expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    await do(page, "Take protection away")

    await do(page, "Let it expire", Expires_at="2030-01-02T03:04")
    await page.get_by_role("button", name="Change its expiry").wait_for()
    await do(page, "Never expire")

    await do(page, "Pause")
    await page.get_by_text("Its team paused it.").wait_for()
    await check_accessible(page)
    await do(page, "Resume")
    await expect(page.get_by_text("Its team paused it.")).to_have_count(0)

    dialog = await begin(page, "Delete")
    confirm = dialog.get_by_role("button", name="Delete", exact=True)
    await write(dialog.get_by_label("Type renamed to confirm"), "orders")
    await expect(confirm).to_be_disabled()
    # Nor by the form alone.
    await dialog.locator("form").evaluate("(one) => one.requestSubmit()")
    await write(dialog.get_by_label("Type renamed to confirm"), "renamed")
    await press(confirm)

    await page.wait_for_url("**/console/databases/deleted")
    await page.get_by_role("cell", name="renamed").wait_for()
    await check_accessible(page)
    await do(page, "Undelete")
    await page.wait_for_url(f"**/console/databases/{database['uuid']}")
    await page.get_by_role("heading", name="renamed", level=1).wait_for()
    await expect(page.locator(".heading .status")).to_have_text("active")


async def test_a_deletion_that_the_page_sees_before_its_answer(visit: Visit) -> None:
    database = await made(visit)
    page = await visit.open(f"/databases/{database['uuid']}")
    dialog = await begin(page, "Delete")
    await write(dialog.get_by_label("Type orders to confirm"), "orders")
    visit.watch.expect(404)
    at = f"**/api/v1/databases/{database['uuid']}"
    reading = await answer_late(page, at, at)
    await reading.wait()
    await press(dialog.get_by_role("button", name="Delete", exact=True))
    await page.wait_for_url("**/console/databases/deleted")
    await page.unroute_all(behavior="wait")


async def answer_late(page: Page, read: str, change: str, *, refused_first: bool = False) -> asyncio.Event:
    """From now on the page reads what the change leaves, and draws it, before the change is answered: at first by a
    refusal that doesn't decide it, if it is to be. The event is that it reads."""
    reading, changed, seen = asyncio.Event(), asyncio.Event(), asyncio.Event()
    refusals = [{"error": {"code": "revocation_pending", "message": "Not yet."}}] if refused_first else []

    async def handle(route: Route) -> None:
        headers = route.request.headers | {"Sec-Fetch-Site": "same-origin"}
        if route.request.method == "GET":
            reading.set()
            await changed.wait()
            await route.fulfill(response=await route.fetch(headers=headers))
            return seen.set()
        answer = await route.fetch(headers=headers)
        changed.set()
        await seen.wait()
        # What it shows of that is drawn.
        await page.evaluate(DRAWN)
        if refusals:
            return await route.fulfill(status=503, json=refusals.pop())
        return await route.fulfill(response=answer)

    for path in {read, change}:
        await page.route(path, handle)
    return reading


async def test_a_deletion_that_the_page_sees_before_it_is_decided(visit: Visit) -> None:
    """The refusal stays, and the next press asks for the same deletion, whose answer is to be had."""
    database = await made(visit)
    page = await visit.open(f"/databases/{database['uuid']}")
    keys: list[str] = []
    page.on("request", lambda one: keys.append(one.headers["idempotency-key"]) if one.method == "DELETE" else None)
    dialog = await begin(page, "Delete")
    await write(dialog.get_by_label("Type orders to confirm"), "orders")
    visit.watch.expect(404, 503)
    at = f"**/api/v1/databases/{database['uuid']}"
    reading = await answer_late(page, at, at, refused_first=True)
    await reading.wait()
    confirm = dialog.get_by_role("button", name="Delete", exact=True)
    await press(confirm)
    await dialog.locator(".error-note").get_by_text("revocation_pending").wait_for()
    await page.evaluate(DRAWN)
    await press(confirm)
    await page.wait_for_url("**/console/databases/deleted")
    assert (len(keys), len(set(keys))) == (2, 1)
    await page.unroute_all(behavior="wait")


async def test_an_undeletion_that_the_list_sees_before_its_answer(visit: Visit) -> None:
    """Its row, which has the dialog, is gone by then."""
    assert visit.caller is not None
    database = await made(visit)
    at = f"/databases/{database['uuid']}"
    body_of(await visit.caller.delete(at))
    page = await visit.open("/databases/deleted")
    dialog = await begin(page, "Undelete")
    reading = await answer_late(page, "**/api/v1/deleted_databases?*", f"**/api/v1{at}/undeletions")
    await page.evaluate(LOOK_AGAIN)
    await reading.wait()
    await press(dialog.get_by_role("button", name="Undelete", exact=True))
    await page.wait_for_url(f"**/console{at}")
    await page.unroute_all(behavior="wait")


async def test_a_dialog_undoes_nothing_of_others(visit: Visit) -> None:
    """What they change while it is open stays."""
    caller = visit.caller
    assert caller is not None
    database = await made(visit, labels={"env": "test", "kept": "before", "constructor": "gone"})
    at = f"/databases/{database['uuid']}"
    page = await visit.open(at)
    dialog = await begin(page, "Edit labels")
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    await write(dialog.get_by_label("Labels"), "env:production\nkept:before")
    data_of(await caller.patch(at, {"labels": {"kept": "after", "owner": "core"}}))
    await expect(page.locator(".label", has_text="owner:core")).to_have_count(1)
    await press(dialog.get_by_role("button", name="Save"))
    await expect(dialog).to_have_count(0)
    labels = {"env": "production", "kept": "after", "owner": "core"}
    assert data_of(await caller.get(at))["labels"] == labels

    await begin(page, "Change limits")
    await write(dialog.get_by_label("Connections"), "7")
    data_of(await caller.patch(f"{at}/quotas", {"warning_threshold_pct": 50}))
    await expect(page.locator("dd", has_text="50 %")).to_have_count(1)
    await press(dialog.get_by_role("button", name="Change"))
    await expect(dialog).to_have_count(0)
    limits = {"storage_hard_limit_gb": None, "connection_hard_limit": 7, "warning_threshold_pct": 50}
    assert data_of(await caller.get(at))["quotas"] == limits


async def test_a_dialog_never_turns_into_its_opposite(visit: Visit) -> None:
    """Where somebody else was first it closes, and the opposite is another action."""
    caller = visit.caller
    assert caller is not None
    at = f"/databases/{(await made(visit))['uuid']}"
    page = await visit.open(at)
    dialog = await begin(page, "Protect from deletion")
    data_of(await caller.patch(at, {"deletion_protection": True}))
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Take protection away")).to_be_enabled()
    await begin(page, "Pause")
    data_of(await caller.post(f"{at}/pauses", None))
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Resume", exact=True)).to_be_enabled()


async def test_a_viewer_is_shown_who_may(console: Console) -> None:
    async with console.person(viewport=NARROW) as visit:
        database = await made(visit)
        assert visit.caller is not None
        async with store(console.service.control_dsn):
            await execute("UPDATE memberships SET role = 'viewer' WHERE user_id = $1", visit.caller.user_id)
        page = await visit.open(f"/databases/{database['uuid']}")
        await page.get_by_text("is viewer: only members, admins and owners may change it").wait_for()
        for action in ("Rename", "Edit labels", "Pause", "Clone", "Delete", "Change limits"):
            await expect(page.get_by_role("button", name=action, exact=True)).to_be_disabled()
        await check_accessible(page)
        for part, action in (("users", "New user"), ("backups", "Take a backup"), ("connect", "Show the password")):
            await visit.open(f"/databases/{database['uuid']}/{part}")
            await expect(page.get_by_role("button", name=action)).to_be_disabled()
            await check_accessible(page)
        assert database["db_password"] not in await page.content()

        # Who takes the attribute away is refused by the API.
        visit.watch.expect(403)
        await visit.open(f"/databases/{database['uuid']}")
        await page.get_by_role("button", name="Pause", exact=True).wait_for()
        await page.evaluate("for (const one of document.querySelectorAll('button')) one.disabled = false")
        dialog = await begin(page, "Pause")
        await press(dialog.get_by_role("button", name="Pause", exact=True))
        await dialog.get_by_text("insufficient_role").wait_for()
        await dialog.get_by_text("This needs the role member or admin or owner in the team.").wait_for()
        error_of(await visit.caller.post(f"/databases/{database['uuid']}/pauses", None), 403, "insufficient_role")
        assert data_of(await visit.caller.get(f"/databases/{database['uuid']}"))["status"] == "active"


async def test_one_that_is_not_there(visit: Visit) -> None:
    visit.watch.expect(404)
    page = await visit.open("/databases/00000000-0000-4000-8000-000000000000")
    await page.get_by_role("heading", name="There is no such database").wait_for()
    await page.get_by_text("not_found").wait_for()
    await check_accessible(page)
