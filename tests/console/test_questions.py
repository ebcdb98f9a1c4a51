"""Questions: the SQL and its class before anything runs, rows, refusals, what is left, and what was asked before."""

import asyncio
import re
from uuid import uuid4

from playwright.async_api import Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Visit
from tests.console.keyboard import choose, press, write
from tests.support.model_server import script, sql

MARKUP = "<img src=x onerror=window.owned=1>"


async def ask(visit: Visit, question: str) -> None:
    await write(visit.page.get_by_label("Question or order"), question)
    await press(visit.page.get_by_role("button", name="Show the SQL"))


async def test_the_sql_comes_before_the_rows(visit: Visit) -> None:
    assert visit.caller is not None
    await visit.caller.created(db_type="postgres", name="orders")
    page = await visit.open("/questions")
    await page.get_by_text("of 500 questions left today").wait_for()
    await check_accessible(page)
    text = f"SELECT n, '{MARKUP}' AS \"{MARKUP}\", repeat('x', 5000) AS long, NULL AS none FROM generate_series(1, 3) n"
    await ask(visit, script(sql(text)))
    panel = page.get_by_role("region", name="Answer")
    await panel.get_by_text("reads rows, changes nothing").wait_for()
    assert await panel.get_by_role("region", name="SQL", exact=True).inner_text() == text
    assert await panel.get_by_role("table").count() == 0
    await press(panel.get_by_role("button", name="Run it"))
    await panel.get_by_text("3 rows.").wait_for()
    assert await panel.get_by_role("columnheader").all_inner_texts() == [
        "n\nint4",
        f"{MARKUP}\ntext",
        "long\ntext",
        "none\ntext",
    ]
    assert await panel.get_by_role("cell", name=MARKUP).count() == 3
    await press(panel.get_by_role("button", name="All 5,000 characters").first)
    await panel.get_by_text("x" * 5000).wait_for()
    await check_accessible(page)
    await page.get_by_text("499 of 500 questions left today").wait_for()

    await ask(visit, script(sql("CREATE TABLE t (id integer)", "ddl")))
    await panel.get_by_text("changes the schema").wait_for()
    await press(panel.get_by_role("button", name="Run it"))
    await check_accessible(page)
    await press(page.get_by_role("dialog").get_by_role("button", name="Run it"))
    await panel.get_by_text("1 statement executed").wait_for()

    visit.watch.expect(422)
    await ask(visit, script(sql(f'DROP DATABASE "{MARKUP}"', "ddl")))
    await page.locator(".error-note").get_by_text("unsafe_sql").wait_for()
    assert MARKUP in await page.get_by_role("region", name="The SQL that was refused").inner_text()
    await check_accessible(page)
    again = page.get_by_role("table", name="Your questions").get_by_role("button", name="Ask again")
    await press(again.last)
    await expect(page.get_by_label("Question or order")).to_have_value(re.compile("generate_series"))
    assert await page.evaluate("window.owned") is None
    assert await page.evaluate("localStorage.length + sessionStorage.length") == 0


async def test_sql_is_shown_for_the_chosen_database_alone(visit: Visit) -> None:
    """It runs where it was asked for, whatever is chosen meanwhile, also before its answer is there."""
    assert visit.caller is not None
    uuid = (await visit.caller.created(db_type="postgres", name="orders"))["uuid"]
    await visit.caller.created(db_type="postgres", name="invoices")
    page = await visit.open(f"/questions?database={uuid}")
    question = script(sql("CREATE TABLE t (id integer)", "ddl"))
    await ask(visit, question)
    panel = page.get_by_role("region", name="Answer")
    await panel.get_by_role("heading", name="The SQL for orders").wait_for()
    await press(panel.get_by_role("button", name="Run it"))
    await expect(page.get_by_role("dialog")).to_contain_text("It changes the schema of orders")
    await page.keyboard.press("Escape")
    database = page.get_by_label("Database", exact=True)
    await expect(page.get_by_role("option", name="invoices (postgres)")).to_have_count(1)
    await choose(database, "invoices")
    await expect(panel).to_have_count(0)

    chosen = asyncio.Event()

    async def hold(route: Route) -> None:
        await chosen.wait()
        await route.continue_()

    await page.route("**/api/v1/query_executions", hold)
    await ask(visit, question)
    translating = page.get_by_text("Translating")
    await translating.wait_for()
    await choose(database, "orders")
    chosen.set()
    await expect(translating).to_have_count(0)
    assert await panel.count() == 0
    await choose(database, "invoices")
    await expect(panel).to_have_count(0)


async def test_a_database_beyond_the_first_page_is_found(visit: Visit) -> None:
    rows = [{"uuid": str(uuid4()), "name": f"db-{number}", "db_type": "postgres"} for number in range(101)]

    async def answer(route: Route) -> None:
        first = "starting_after" not in route.request.url
        await route.fulfill(json={"data": rows[:100] if first else rows[100:], "has_more": first})

    await visit.page.route("**/api/v1/databases?*", answer)
    page = await visit.open("/questions")
    await press(page.get_by_role("button", name="More to choose from"))
    await expect(page.get_by_role("option", name="db-100 (postgres)")).to_have_count(1)
    await expect(page.get_by_role("button", name="More to choose from")).to_have_count(0)
    page = await visit.open("/questions")
    async with page.expect_request(lambda request: "name=db-7" in request.url):
        await write(page.get_by_label("Database: name begins with"), "DB-7")
    await check_accessible(page)
