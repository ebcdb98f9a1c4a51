"""Backups of a database, from its page: taken, proven, restored from, deleted; and a clone."""

from playwright.async_api import expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import press
from tests.console.steps import both_engines, do, made
from tests.quotas.tenant_session import session_of
from tests.support.answers import body_of, data_of
from tests.support.waited import WAIT, waited

SCRIPT = "before <script>document.title = 1</script>"


@both_engines
async def test_a_backup_and_the_ways_back(visit: Visit, engine: str) -> None:
    database = await made(visit, db_type=engine)
    async with session_of(database) as session:
        await session.run("CREATE TABLE kept (n int)")
        await session.run("INSERT INTO kept VALUES (1), (2)")
    page = await visit.open(f"/databases/{database['uuid']}/backups")
    await page.get_by_text("No backups yet").wait_for()
    await check_accessible(page)
    await do(page, "Change the policy", "Change", Keep_for_days="9")
    await page.get_by_text("kept for 9 days").wait_for()

    await do(page, "Take a backup", "Take it", Description=SCRIPT)
    backup = page.get_by_role("article")
    await backup.get_by_text(SCRIPT).wait_for()
    await backup.get_by_text("2 rows").first.wait_for()
    await do(page, "Test it")
    await backup.get_by_text("Proven").wait_for()
    await check_accessible(page)

    async with session_of(database) as session:
        await session.run("DROP TABLE kept")
    await do(page, "Restore into this database", "Restore", Type_orders_to_confirm="orders")
    await page.wait_for_url("**/console/operations/*")
    await page.locator(".steps > p .status", has_text="succeeded").wait_for()
    await check_accessible(page)
    async with session_of(database) as session:
        assert await session.value("SELECT count(*) FROM kept") == 2

    await visit.open(f"/databases/{database['uuid']}/backups")
    await page.get_by_text("before restore").wait_for()
    own = page.get_by_role("article").filter(has_text=SCRIPT)
    await press(own.get_by_role("button", name="Delete"))
    await press(page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True))
    await expect(own).to_have_count(0)
    await visit.open("/backups")
    await page.get_by_role("article").filter(has_text="before restore").wait_for()
    await check_accessible(page)
    await do(page, "New database from it")
    await page.get_by_role("heading", name="orders-restored", level=1).wait_for()
    await expect(page.locator(".heading .status")).to_have_text("active")


async def test_a_new_database_is_of_its_backups_team(console: Console, visit: Visit) -> None:
    """From the page of all backups too: in the person's primary team others could read it."""
    caller, owner = visit.caller, await console.service.caller()
    assert caller is not None
    invitation = await owner.post(f"/teams/{owner.team_id}/invitations", {"role": "member"})
    data_of(await caller.post("/invitation_acceptances", {"token": body_of(invitation, 201)["token"]}), 201)
    database = await owner.created("orders", db_type="postgres")
    answer = await owner.post(f"/databases/{database['uuid']}/backups", {}, params=WAIT)
    await waited(owner, answer, "/backups")
    page = await visit.open("/backups")
    await expect(page.get_by_role("button", name="Delete")).to_have_attribute(
        "title", "Only admins and owners of the team may."
    )
    await do(page, "New database from it")
    await page.get_by_role("heading", name="orders-restored", level=1).wait_for()
    teams = {one["name"]: one["team_id"] for one in data_of(await owner.get("/databases"))}
    assert teams == {"orders": owner.team_id, "orders-restored": owner.team_id}
