"""Operations: what is under way is seen where it matters, with its steps, and is ended from its page."""

from playwright.async_api import expect

from tests.applications.support import applied
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.steps import begin, do, made
from tests.support.answers import body_of

BLUEPRINT = "CREATE TABLE notes (note varchar(80)); INSERT INTO notes VALUES ('<img src=/nowhere onerror=alert(1)>');"


async def test_one_that_waits_is_cancelled(console: Console, visit: Visit) -> None:
    database = await made(visit)
    assert visit.caller is not None
    with console.service.frozen("worker"):
        body_of(await visit.caller.post(f"/databases/{database['uuid']}/backups", {"description": "to stop"}), 202)
        page = await visit.open(f"/databases/{database['uuid']}")
        await page.locator(".under-way", has_text="backup").get_by_role("link", name="Steps").click()
        await page.get_by_role("heading", name="orders: backup").wait_for()
        await page.locator(".steps li", has_text="dump").wait_for()
        await check_accessible(page)
        await do(page, "Cancel the operation", "Cancel it")
        await page.locator(".steps > p .status", has_text="cancelled").wait_for()
    await expect(page.get_by_role("button", name="Cancel the operation")).to_have_count(0)
    await page.get_by_role("navigation", name="Console").get_by_role("link", name="Operations").click()
    await page.get_by_label("Status").select_option("cancelled")
    await expect(page.get_by_role("row")).to_have_count(2)
    await check_accessible(page)
    await page.get_by_label("Status").select_option("failed")
    await page.get_by_text("No operations").wait_for()


async def test_a_worker_that_is_away_and_comes_back(console: Console, visit: Visit) -> None:
    database = await made(visit)
    page = await visit.open(f"/databases/{database['uuid']}")
    with console.service.frozen("worker"):
        dialog = await begin(page, "Clone")
        await dialog.get_by_role("button", name="Clone", exact=True).click()
        await page.get_by_role("heading", name="orders-clone", level=1).wait_for()
        await expect(page.locator(".heading .status")).to_have_text("provisioning")
        await page.locator(".under-way", has_text="clone").wait_for()
        await check_accessible(page)
    await expect(page.locator(".heading .status")).to_have_text("active")
    await expect(page.locator(".under-way")).to_have_count(0)


async def test_applications_of_blueprints(visit: Visit) -> None:
    database = await made(visit)
    assert visit.caller is not None
    page = await visit.open(f"/databases/{database['uuid']}/blueprints")
    await page.get_by_text("No blueprint has been applied").wait_for()
    await check_accessible(page)
    await applied(visit.caller, database, BLUEPRINT)
    await applied(visit.caller, database, BLUEPRINT)
    await page.get_by_role("cell", name="failed").wait_for()
    await page.get_by_role("button", name="Log").first.click()
    await page.locator(".log .reason", has_text="42P07").wait_for()
    await page.locator(".log pre", has_text="onerror").wait_for()
    await check_accessible(page)
