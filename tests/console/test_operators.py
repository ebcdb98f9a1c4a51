"""The operators' pages, by the keyboard alone."""

import dataclasses
import re
from uuid import uuid4

from playwright.async_api import Locator, expect

from app.contracts.upkeep import ScheduleId
from app.store.session import fetch
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.findings import write as write_findings
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import press, write
from tests.console.steps import begin, do, without
from tests.console.test_leaving import LOOK_AGAIN
from tests.console.test_operations import put_off
from tests.console.test_people import EVIL, act, rename
from tests.support.answers import body_of, data_of
from tests.support.client import OPERATOR_TOO
from tests.support.ports import free_port
from tests.support.store import store
from tests.support.waiting import until


async def test_what_concerns_all_teams(console: Console) -> None:
    tenant = await console.service.caller()
    await rename(console, tenant, EVIL)
    data_of(await tenant.patch(f"/teams/{tenant.team_id}", {"name": EVIL}))
    database = await tenant.created("theirs")
    async with console.person(await console.service.caller(scopes=OPERATOR_TOO)) as visit:
        page = await visit.open("/operator/hosts")
        await page.get_by_role("cell", name=re.compile("postgres")).first.wait_for()
        host = page.get_by_role("row").filter(has_text="postgres").first
        await expect(host).to_contain_text(re.compile(r"us-east-1.*\d of [\d,]+.*\d of [\d,]+.*\d %", re.DOTALL))
        await check_accessible(page)
        # A check waits a minute for a worker of a host's region, and while it does, nobody begins another.
        async with without(console, ScheduleId.RECONCILE):
            await a_host_comes_and_goes(visit)
        await press(page.get_by_role("link", name="Pools"))
        await page.get_by_role("cell", name=re.compile("postgres in")).first.wait_for()
        await check_accessible(page)
        await press(page.get_by_role("link", name="Findings"))
        evil = page.get_by_role("row").filter(has_text="evil")
        await finding_shows(console, evil)
        await act(page, "Check now", "Run the check")
        await page.get_by_role("status").filter(has_text="A check was started").wait_for()
        # What the run doesn't see is over.
        await expect(evil).to_have_count(0)
        await check_accessible(page)
        await press(page.get_by_role("link", name="Audit seals"))
        await page.get_by_role("row").nth(1).wait_for()
        await check_accessible(page)
        await press(page.get_by_role("link", name="All operations"))
        await write(page.get_by_label("Team"), EVIL)
        await press(page.get_by_role("button", name="Filter"))
        row = page.get_by_role("row").filter(has_text="theirs").first
        await expect(row).to_contain_text(EVIL)
        await expect(row).to_contain_text("succeeded")
        await check_accessible(page)
        await act(page, "Pause a database", "Pause a database", Its_uuid=database["uuid"])
        assert data_of(await tenant.get(f"/databases/{database['uuid']}"))["status"] == "paused"
        await act(page, "Resume a database", "Resume a database", Its_uuid=database["uuid"])
        visit.watch.expect(404)
        await press(page.get_by_role("button", name="Resume a database"))
        await write(page.get_by_role("dialog").get_by_label("Its uuid"), str(uuid4()))
        await page.keyboard.press("Enter")
        await expect(page.locator(".error-note")).to_contain_text("not_found")
        await expect(page.locator(".error-note")).to_contain_text("req_")
        await page.keyboard.press("Escape")
        await unmarked(visit)


async def finding_shows(console: Console, row: Locator) -> None:
    """Writes a finding until it shows: a scheduled check that runs meanwhile doesn't see it, and ends it."""

    async def shows() -> bool:
        await write_findings(None, [Violation(rule="evil", subject=EVIL, detail=EVIL)], {})
        return EVIL in "".join(await row.all_text_contents())

    async with store(console.service.control_dsn):
        await until(shows)


async def a_host_comes_and_goes(visit: Visit) -> None:
    page = visit.page
    dialog = await begin(page, "Add a host")
    await write(dialog.get_by_label("Region"), "nowhere-1")
    await write(dialog.get_by_label("Administrator's host"), "127.0.0.1")
    await write(dialog.get_by_label("Administrator's port"), str(free_port()))
    await write(dialog.get_by_label("Administrator's user"), "nobody")
    await write(dialog.get_by_label("Administrator's password"), "hidden-words")
    await press(dialog.get_by_text("The same with curl"))
    assert "hidden-words" not in await page.inner_text("body")
    visit.watch.expect(422)
    await press(dialog.get_by_role("button", name="Add it"))
    await expect(dialog.locator(".error-note")).to_contain_text("req_")
    await check_accessible(page)
    await page.keyboard.press("Escape")
    async with store(visit.console.service.control_dsn):
        await fetch(
            "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
            " connection_capacity) VALUES ('postgres', '', '', 'nowhere-1', 'lost.example.com', 5432, '', 1, 1)"
        )
    try:
        page = await visit.open("/operator/hosts")
        address = "lost.example.com:5432"
        await do(page, f"Drain {address}", "Drain")
        await do(page, f"Undrain {address}", "Undrain")
        # Where somebody else was first, a dialog doesn't turn into its opposite.
        dialog = await begin(page, f"Drain {address}")
        async with store(visit.console.service.control_dsn):
            await fetch("UPDATE engine_hosts SET draining = true WHERE host = 'lost.example.com'")
        await page.evaluate(LOOK_AGAIN)
        await expect(dialog).to_have_count(0)
        dialog = await begin(page, f"Evacuate {address}")
        await write(dialog.get_by_label(f"Type {address} to confirm"), address)
        await press(dialog.get_by_role("button", name="Evacuate"))
        await dialog.get_by_text("No database was on it.").wait_for()
        await press(dialog.get_by_role("button", name="Done"))
        await check_accessible(page)
        dialog = await begin(page, f"Remove {address}")
        await write(dialog.get_by_label(f"Type {address} to confirm"), address)
        await press(dialog.get_by_role("button", name="Remove"))
        await expect(page.get_by_role("row").filter(has_text=address)).to_have_count(0)
    finally:
        async with store(visit.console.service.control_dsn):
            await fetch("DELETE FROM engine_hosts WHERE host = 'lost.example.com'")


async def test_somebodys_operation_is_retried_and_cancelled(console: Console) -> None:
    """The link into Temporal's pages leads to the operation's workflow."""
    service = console.service
    tenant = await service.caller()
    database = await tenant.created("waiting")
    async with service.another_api(TEMPORAL_UI_URL="https://temporal.example.com") as (http, _):
        other = Console(dataclasses.replace(service, http=http), console.browser)
        async with service.frozen("worker"):
            body_of(await tenant.post(f"/databases/{database['uuid']}/backups", {}), 202)
            await put_off(console, database["uuid"])
            async with other.person(await service.caller(scopes=OPERATOR_TOO, http=http)) as visit:
                page = await visit.open("/operator/operations?open=true")
                row = page.get_by_role("row").filter(has_text="waiting").filter(has_text="backup")
                link = row.get_by_role("link", name="Temporal")
                await expect(link).to_have_attribute("href", re.compile(r"^https://temporal\.example\.com/.*backup"))
                await expect(link).to_have_attribute("rel", "noreferrer")
                await check_accessible(page)
                for action, confirm in (("Retry", "Retry"), ("Cancel", "Cancel the operation")):
                    await press(row.get_by_role("button", name=action, exact=True))
                    await press(page.get_by_role("dialog").get_by_role("button", name=confirm, exact=True))
                    await expect(page.get_by_role("dialog")).to_have_count(0)
                await expect(row).to_have_count(0)
    operation = data_of(await tenant.get(f"/operations?database_uuid={database['uuid']}"))[0]
    assert (operation["type"], operation["status"]) == ("backup", "cancelled")


async def unmarked(visit: Visit) -> None:
    """From the next request on they are nobody's operator."""
    assert visit.caller is not None
    async with store(visit.console.service.control_dsn):
        await fetch("UPDATE users SET operator = false WHERE id = $1", visit.caller.user_id)
    visit.watch.expect(403)
    page = await visit.open("/operator/hosts")
    await expect(page.locator(".error-note")).to_contain_text("operators_only")
    await expect(page.get_by_role("link", name="Findings")).to_have_count(0)
    await check_accessible(page)
