"""Numbers beyond 2^53, which JavaScript's own numbers change: in variables of blueprints they are what was typed, or
stored, and among rows what the database has; by the keyboard alone."""

from typing import Any

from playwright.async_api import expect

from tests.applications.support import applied, saved
from tests.console.accessible import check_accessible
from tests.console.browser import Visit
from tests.console.keyboard import press, write
from tests.console.steps import made
from tests.support.answers import data_of
from tests.support.model_server import script, sql

ODD, NEXT, MOST = 2**53 + 1, 2**53 + 3, 2**63 - 1
SQL = "CREATE TABLE t (n bigint);\nINSERT INTO t VALUES ({{n}});\n"
DEFINITIONS = {"n": {"type": "integer", "default": ODD, "min": -ODD, "max": MOST}}
WITHOUT_RAW = "delete JSON.rawJSON"
"""As in Safari before 18.4, and Firefox before 135."""


async def test_they_are_sent_as_they_were_typed(visit: Visit) -> None:
    assert visit.caller is not None
    database = await made(visit)
    uuid = await saved(visit.caller, SQL, variables={"n": {"type": "integer"}})
    page = await visit.open(f"/blueprints/{uuid}/change")
    variable = page.get_by_role("group", name="Variable n")
    for label, value in {"Default": ODD, "Least": -ODD, "Most": MOST}.items():
        await write(variable.get_by_label(label), str(value))
    await page.get_by_text("2 statements for").wait_for()
    await press(page.get_by_text("The same with curl"))
    await expect(page.locator(".curl pre")).to_contain_text(f'"default":{ODD}')
    await press(page.get_by_role("button", name="Save"))
    await page.get_by_role("link", name="Change").wait_for()
    assert await variables(visit, uuid) == DEFINITIONS

    # What else is changed leaves them as they are.
    await press(page.get_by_role("link", name="Change"))
    await expect(variable.get_by_label("Default")).to_have_value(str(ODD))
    await write(page.get_by_label("Description"), "Changed")
    await press(page.get_by_role("button", name="Save"))
    await page.get_by_text("Changed", exact=True).wait_for()
    assert await variables(visit, uuid) == DEFINITIONS

    await visit.open(f"/blueprints/{uuid}/run?database={database['uuid']}")
    await page.get_by_text(f"integer, default {ODD}, from {-ODD}, to {MOST}").wait_for()
    await write(page.get_by_label("n", exact=True), str(NEXT))
    await press(page.get_by_role("button", name="Dry run"))
    log = page.get_by_role("region", name="Dry run")
    await log.get_by_text("passed; nothing was changed").wait_for()
    await expect(log).to_contain_text(f"INSERT INTO t VALUES ({NEXT})")
    # With a point it would be read as another one.
    await write(page.get_by_label("n", exact=True), "9007199254740995.0")
    await page.locator(".field-error").get_by_text("with all its digits").wait_for()
    visit.watch.expect(422)
    await press(page.get_by_role("button", name="Dry run"))
    await page.locator(".error-note").get_by_text("must be an integer").wait_for()


async def test_a_browser_that_would_change_them_says_so(visit: Visit) -> None:
    """It shows them as they are, and changes none by saving something else."""
    assert visit.caller is not None
    uuid = await saved(visit.caller, SQL, variables=DEFINITIONS)
    await visit.context.add_init_script(WITHOUT_RAW)
    visit.watch.expect(422)
    page = await visit.open(f"/blueprints/{uuid}/change")
    variable = page.get_by_role("group", name="Variable n")
    for label, value in {"Default": ODD, "Least": -ODD, "Most": MOST}.items():
        field = variable.get_by_label(label)
        await expect(field).to_have_value(str(value))
        await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(variable.locator(".field-error").first).to_contain_text("This browser would change this number")
    await check_accessible(page)
    await write(page.get_by_label("Description"), "Changed")
    await press(page.get_by_role("button", name="Save"))
    await page.locator("form > .error-note").get_by_text("invalid_field").wait_for()
    assert await variables(visit, uuid) == DEFINITIONS

    # What it can send, it does.
    for label, value in {"Default": 2**53 - 1, "Least": -5, "Most": 2**53 - 1}.items():
        await write(variable.get_by_label(label), str(value))
    await press(page.get_by_role("button", name="Save"))
    await page.get_by_role("link", name="Change").wait_for()
    expected = {"n": {"type": "integer", "default": 2**53 - 1, "min": -5, "max": 2**53 - 1}}
    assert await variables(visit, uuid) == expected


async def test_they_are_shown_as_they_are(visit: Visit) -> None:
    """In a document among the rows of a question, and in the log of an application."""
    assert visit.caller is not None
    database = await made(visit, db_type="postgres")
    page = await visit.open(f"/questions?database={database['uuid']}")
    text = f"""SELECT '{{"n": {ODD}}}'::jsonb AS document"""
    await write(page.get_by_label("Question or order"), script(sql(text)))
    await press(page.get_by_role("button", name="Show the SQL"))
    await press(page.get_by_role("button", name="Run it"))
    await expect(page.get_by_role("table", name="Rows").get_by_role("cell")).to_contain_text(str(ODD))

    definitions = {"n": {"type": "integer"}}
    application = await applied(visit.caller, database, SQL, definitions=definitions, variables={"n": NEXT})
    await visit.open(f"/databases/{database['uuid']}/blueprints?application={application['id']}")
    log = page.get_by_role("region", name=f"Log of application {application['id']}")
    await expect(log.locator("dd")).to_have_text(str(NEXT))


async def variables(visit: Visit, uuid: str) -> Any:
    assert visit.caller is not None
    return data_of(await visit.caller.get(f"/blueprints/{uuid}"))["variables"]
