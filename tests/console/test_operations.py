"""Operations: what is under way is seen where it matters, with its steps, and is ended from its page."""

import re
from datetime import timedelta
from uuid import UUID

from playwright.async_api import Request, expect

from app.core.clock import utc_now
from app.databases import records as databases
from app.operations import records as operations
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import ReasonCode, reason
from app.store.session import transaction
from tests.applications.support import applied, ask
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press
from tests.console.steps import begin, do, made
from tests.support.answers import body_of, data_of
from tests.support.store import store

CONNECTIONS = 6
"""Of a browser to a server that speaks HTTP/1.1."""
BLUEPRINT = "CREATE TABLE notes (note varchar(80)); INSERT INTO notes VALUES ('<img src=/nowhere onerror=alert(1)>');"


async def test_one_that_waits_is_cancelled(console: Console, visit: Visit) -> None:
    database = await made(visit)
    assert visit.caller is not None
    async with console.service.frozen("worker"):
        body_of(await visit.caller.post(f"/databases/{database['uuid']}/backups", {"description": "to stop"}), 202)
        page = await visit.open(f"/databases/{database['uuid']}")
        await press(page.locator(".under-way", has_text="backup").get_by_role("link", name="Steps"))
        await page.get_by_role("heading", name="orders: backup").wait_for()
        await page.locator(".steps li", has_text="dump").wait_for()
        await expect(page.locator(".steps > p").first).to_have_text(re.compile(r"pending\s+for \d"))
        await check_accessible(page)
        await expect(page.get_by_role("button", name="Retry now")).to_be_disabled()
        await put_off(console, database["uuid"])
        await page.get_by_text("The store of backups can't be reached").wait_for()
        await check_accessible(page)
        await do(page, "Retry now")
        await do(page, "Cancel the operation", "Cancel it")
        await page.locator(".steps > p .status", has_text="cancelled").wait_for()
    await expect(page.get_by_role("button", name="Cancel the operation")).to_have_count(0)
    await press(page.get_by_role("navigation", name="Console").get_by_role("link", name="Operations"))
    await choose(page.get_by_label("Status"), "cancelled")
    await expect(page.get_by_role("row")).to_have_count(2)
    await check_accessible(page)
    await choose(page.get_by_label("Status"), "failed")
    await page.get_by_text("No operations").wait_for()


async def put_off(console: Console, database: str) -> None:
    """The database's operation waits for its next attempt, as after one that failed."""
    because = reason(
        ReasonCode.BACKUP_STORE_UNAVAILABLE, retryable=True, next_attempt_at=utc_now() + timedelta(minutes=5)
    )
    async with store(console.service.control_dsn), transaction():
        record = await databases.find_for_update(UUID(database))
        assert record is not None
        (operation,) = await operations.open_on(record.id, (OperationType.BACKUP,))
        await operations.write(operation, OperationStatus.WAITING, operation.steps, reason=because)


async def test_a_worker_that_is_away_and_comes_back(console: Console, visit: Visit) -> None:
    database = await made(visit)
    page = await visit.open(f"/databases/{database['uuid']}")
    async with console.service.frozen("worker"):
        dialog = await begin(page, "Clone")
        await press(dialog.get_by_role("button", name="Clone", exact=True))
        await page.get_by_role("heading", name="orders-clone", level=1).wait_for()
        await expect(page.locator(".heading .status")).to_have_text("provisioning")
        await page.locator(".under-way", has_text="clone").wait_for()
        await check_accessible(page)
    await expect(page.locator(".heading .status")).to_have_text("active")
    await expect(page.locator(".under-way")).to_have_count(0)


async def test_many_at_once(console: Console, visit: Visit) -> None:
    """Each stream of events holds one of the six connections that a browser has to a server: the page follows one, and
    reads on."""
    database = await made(visit)
    assert visit.caller is not None
    streams: set[str] = set()
    visit.page.on("request", lambda asked: streams.add(asked.url) if asked.url.endswith("/events") else None)
    async with console.service.frozen("worker"):
        for number in range(CONNECTIONS):
            await ask(visit.caller, database, f"CREATE TABLE t{number} (id integer);", wait=False)
        page = await visit.open(f"/databases/{database['uuid']}")
        await expect(page.locator(".under-way")).to_have_count(CONNECTIONS)
        async with page.expect_response(lambda answer: "/operations?" in answer.url):
            pass
        assert len(streams) == 1
        await check_accessible(page)
    await expect(page.locator(".under-way")).to_have_count(0)


async def test_applications_of_blueprints(visit: Visit) -> None:
    database = await made(visit)
    assert visit.caller is not None
    page = await visit.open(f"/databases/{database['uuid']}/blueprints")
    await page.get_by_text("No blueprint has been applied").wait_for()
    await check_accessible(page)
    await applied(visit.caller, database, BLUEPRINT)
    again = await applied(visit.caller, database, BLUEPRINT)
    name = "<b onclick=alert(1)>notes</b>"
    data_of(await visit.caller.patch(f"/blueprints/{again['blueprint_uuid']}", {"name": name}))
    await page.get_by_role("cell", name="failed").wait_for()
    await page.reload()
    await page.get_by_role("link", name=name).wait_for()
    await press(page.get_by_role("button", name="Log").first)
    await page.locator(".log .reason", has_text="42P07").wait_for()
    await page.locator(".log pre", has_text="onerror").wait_for()
    await check_accessible(page)


async def test_the_log_of_what_has_ended_is_not_read_again(visit: Visit) -> None:
    page, caller = visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    application = await applied(caller, database, BLUEPRINT)
    logs: list[str] = []
    lists: list[str] = []

    def note(asked: Request) -> None:
        if "/blueprint_applications" in asked.url:
            (logs if asked.url.endswith(f"/blueprint_applications/{application['id']}") else lists).append(asked.url)

    page.on("request", note)
    await page.clock.install()
    await visit.open(f"/databases/{database['uuid']}/blueprints?application={application['id']}")
    await page.locator(".log pre", has_text="onerror").wait_for()
    for _ in range(2):
        logs.clear()
        lists.clear()
        while len(lists) < 3:
            await page.clock.fast_forward(3000)
    assert logs == []
