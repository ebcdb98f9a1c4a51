"""A blueprint, from its first line to a database: written, tried, applied, changed, compared, deleted;
by the keyboard alone."""

import asyncio

from playwright.async_api import Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import NARROW, Console, Visit
from tests.console.keyboard import choose, press, tab_to, write

MARKUP = '"><img src=x onerror="window.owned=1">{{not}}'
SQL = (
    "CREATE TABLE {{table}} (id integer PRIMARY KEY, note text);\nINSERT INTO {{table}} VALUES ({{first}}, {{text}});\n"
)


async def test_from_its_first_line_to_a_database(visit: Visit) -> None:
    assert visit.caller is not None
    await visit.caller.created(db_type="postgres", name="orders")
    page = await visit.open("/blueprints/new")
    await write(page.get_by_label("Name", exact=True), MARKUP)
    editor = page.get_by_role("textbox", name="SQL", exact=True)
    await tab_to(editor)
    # What is wrong is marked as it is written, and a click goes there.
    await page.keyboard.insert_text("CREATE TABLE a (id integer);\n  INSRT INTO a VALUES (1);\n")
    wrong = page.get_by_role("list", name="Errors").get_by_role("button").first
    assert "line 2, column 3" in await wrong.inner_text()
    assert await page.locator(".cm-lintRange-error").inner_text() == "INSRT"
    await check_accessible(page)
    await press(wrong)
    await page.keyboard.insert_text("-- ")
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(SQL)
    for name, type in {"table": "identifier", "first": "integer", "text": "string"}.items():
        await press(page.get_by_role("button", name=f"Declare {name}"))
        await choose(page.get_by_role("group", name=f"Variable {name}").get_by_label("Type"), type)
    await write(page.get_by_role("group", name="Variable first").get_by_label("Default"), "7")
    await press(page.get_by_role("group", name="Variable text").get_by_label("Secret"), "Space")
    await page.get_by_text("2 statements for PostgreSQL").wait_for()
    await check_accessible(page)
    await press(page.get_by_role("button", name="Create"))
    await page.get_by_role("link", name="Change").wait_for()
    assert await page.locator("h1").inner_text() == MARKUP
    await check_accessible(page)

    await press(page.get_by_role("link", name="Try and apply"))
    await write(page.get_by_label("table"), "notes")
    await write(page.get_by_label("text", exact=True), "hidden-words")
    await press(page.get_by_role("button", name="Dry run"))
    log = page.get_by_role("region", name="Dry run")
    await log.get_by_text("passed; nothing was changed").wait_for()
    assert 'CREATE TABLE "notes"' in await log.inner_text()
    assert await log.get_by_role("listitem").count() == 2
    await check_accessible(page)
    await press(page.get_by_role("button", name="Apply", exact=True))
    dialog = page.get_by_role("dialog")
    await press(dialog.get_by_text("The same with curl"))
    assert "Idempotency-Key" in await dialog.inner_text()
    assert "hidden-words" not in await page.inner_text("body")
    await check_accessible(page)
    await press(dialog.get_by_role("button", name="Apply"))
    await page.get_by_role("region", name="Application").get_by_text("applied", exact=True).wait_for()
    await press(page.get_by_role("link", name="Applications"))
    await page.get_by_role("cell", name="applied", exact=True).wait_for()
    await expect(page.get_by_role("cell", name="orders")).to_have_count(2)

    # A new database begins with it.
    page = await visit.open("/databases/new")
    await write(page.get_by_label("Name"), "begun")
    await choose(page.get_by_label("Blueprint"), MARKUP)
    await write(page.get_by_label("table"), "notes")
    await write(page.get_by_label("first"), "many")
    await write(page.get_by_label("text", exact=True), "hidden-words")
    await press(page.get_by_text("The same with curl"))
    assert "blueprint_uuid" in await page.locator(".curl pre").inner_text()
    assert "hidden-words" not in await page.inner_text("body")
    visit.watch.expect(422)
    await press(page.get_by_role("button", name="Create database"))
    await page.locator(".error-note").get_by_text("req_").wait_for()
    await check_accessible(page)
    await write(page.get_by_label("first"), "8")
    await press(page.get_by_role("button", name="Create database"))
    await page.get_by_role("heading", name="begun", exact=True).wait_for()
    await press(page.get_by_role("link", name="Blueprints").last)
    await page.get_by_role("cell", name="completed").wait_for()

    page = await visit.open("/blueprints")
    await press(page.get_by_role("link", name=MARKUP))
    await press(page.get_by_role("link", name="Change"))
    await tab_to(page.get_by_role("textbox", name="SQL", exact=True))
    await page.keyboard.press("Control+End")
    await page.keyboard.insert_text("DROP TABLE IF EXISTS old;\n")
    await page.get_by_text("3 statements for PostgreSQL").wait_for()
    await press(page.get_by_role("button", name="Save"))
    await press(page.get_by_role("link", name="Versions"))
    after = page.locator(".cm-mergeView .cm-content").last
    await after.get_by_text("DROP TABLE").wait_for()
    assert "DROP TABLE" not in await page.locator(".cm-mergeView .cm-content").first.inner_text()
    await check_accessible(page)
    await press(page.get_by_role("link", name="SQL"))
    await press(page.get_by_role("button", name="Delete"))
    await write(page.get_by_role("dialog").get_by_role("textbox"), MARKUP)
    await press(page.get_by_role("dialog").get_by_role("button", name="Delete"))
    await page.wait_for_url("**/console/blueprints")
    assert await page.evaluate("window.owned") is None


async def test_by_keyboard_on_a_phone(console: Console) -> None:
    async with console.person(viewport=NARROW) as visit:
        page = await visit.open("/blueprints/new")
        await page.get_by_label("Name", exact=True).focus()
        await page.keyboard.type("small")
        for _ in range(3):
            await page.keyboard.press("Tab")
        await page.keyboard.type("CREATE TABLE t (id integer)")
        await page.get_by_text("1 statement for").wait_for()
        # Tab leaves the editor: for the button that declares, and then for the one that creates.
        for _ in range(2):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="Change").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await check_accessible(page)


async def test_what_is_not_saved_outlives_a_visit_to_another_page(visit: Visit) -> None:
    page = await visit.open("/blueprints/new")
    # Variables have names too.
    name, editor = page.get_by_label("Name", exact=True).first, page.get_by_role("textbox", name="SQL", exact=True)
    draft = page.get_by_role("group", name="Draft")
    await write(name, "notes")
    await tab_to(editor)
    await page.keyboard.insert_text(SQL)
    await press(page.get_by_role("button", name="Declare table"))
    await press(page.get_by_role("link", name="Webhooks", exact=True))
    await page.get_by_role("heading", name="Webhooks", level=1).wait_for()
    await page.go_back()
    await draft.wait_for()
    await expect(name).to_have_value("notes")
    await expect(editor).to_contain_text("CREATE TABLE {{table}}")
    await page.get_by_role("group", name="Variable table").wait_for()
    await check_accessible(page)
    # Whoever closes the tab, or loads it anew, is asked.
    async with page.expect_event("dialog") as asked:
        await page.close(run_before_unload=True)
    dialog = await asked.value
    assert dialog.type == "beforeunload"
    await dialog.dismiss()

    await press(draft.get_by_role("button", name="Discard it"))
    await expect(draft).to_have_count(0)
    await expect(name).to_have_value("")
    await expect(editor).to_have_text("")
    await write(name, "small")
    await tab_to(editor)
    await page.keyboard.insert_text("CREATE TABLE t (id integer)")
    await press(page.get_by_role("button", name="Create"))
    # What is saved is no draft any more: neither of this blueprint, nor of the next new one.
    await press(page.get_by_role("link", name="Change"))
    await expect(editor).to_contain_text("CREATE TABLE t")
    await expect(draft).to_have_count(0)
    await press(page.get_by_role("link", name="Blueprints", exact=True).first)
    await press(page.get_by_role("link", name="New blueprint"))
    await expect(name).to_have_value("")
    await expect(draft).to_have_count(0)


async def test_who_leaves_before_the_answer_saves_once(visit: Visit) -> None:
    page = await visit.open("/blueprints/new")
    name, draft = page.get_by_label("Name", exact=True), page.get_by_role("group", name="Draft")
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == "POST":
            sent.set()
            await go_on.wait()
        await route.continue_()

    await page.route("**/api/v1/blueprints", hold)
    await write(name, "small")
    await tab_to(page.get_by_role("textbox", name="SQL", exact=True))
    await page.keyboard.insert_text("CREATE TABLE t (id integer)")
    await press(page.get_by_role("button", name="Create"))
    await sent.wait()
    await press(page.get_by_role("link", name="Webhooks", exact=True))
    await page.get_by_role("heading", name="Webhooks", level=1).wait_for()
    await page.go_back()
    await draft.wait_for()
    go_on.set()
    await expect(draft).to_have_count(0)
    # What is still written there is the same request.
    await press(page.get_by_role("button", name="Create"))
    await page.get_by_role("link", name="Change").wait_for()
    await press(page.get_by_role("link", name="Blueprints", exact=True).first)
    await expect(page.get_by_role("link", name="small")).to_have_count(1)
    await press(page.get_by_role("link", name="New blueprint"))
    await expect(name).to_have_value("")
