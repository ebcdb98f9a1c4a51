"""Passwords: shown when asked for, given once by a rotation, and gone with the page. What is shown lets a client in."""

import asyncio
import os
import shutil
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Visit
from tests.console.keyboard import choose, press
from tests.console.steps import begin, both_engines, do, fill, made
from tests.quotas.tenant_session import refused

# As when another tab is looked at.
HIDE = """
() => {
  Object.defineProperty(document, "hidden", { configurable: true, value: true });
  document.dispatchEvent(new Event("visibilitychange"));
  delete document.hidden;
}
"""
CLIENTS = {"postgres": ("psql", "psql", "-c"), "mysql": ("mariadb", "mariadb", "-e")}


async def check_gone(page: Page, *secrets: str) -> None:
    """Not in the page, in the browser's storage, in the address or the history's state."""
    kept: str = await page.evaluate(
        "() => document.documentElement.outerHTML + JSON.stringify([{ ...localStorage }, { ...sessionStorage },"
        " location.href, history.state, document.cookie])"
    )
    for secret in secrets:
        assert secret not in kept


@pytest.mark.parametrize("engine", CLIENTS)
async def test_the_shown_command_connects(visit: Visit, engine: str) -> None:
    database = await made(visit, db_type=engine)
    password = database["db_password"]
    page = await visit.open(f"/databases/{database['uuid']}/connect")
    await check_gone(page, password)
    await press(page.get_by_role("button", name="Show the password"))
    await page.locator("dd code", has_text=password).wait_for()
    await check_accessible(page)

    client, program, option = CLIENTS[engine]
    choice = page.get_by_label("Client, language or framework")
    await choose(choice, client)
    command = await page.locator("pre[role=region]").first.inner_text()
    if shutil.which(program):
        assert "3" in await said(f"{command} {option} 'SELECT 1 + 2'")
    await choose(choice, "url")
    assert (await page.locator("pre[role=region]").first.inner_text()).startswith(database["connection_string"])
    for value in await choice.locator("option").evaluate_all("(all) => all.map((one) => one.value)"):
        await choose(choice, value)
        await expect(page.locator("pre[role=region]").first).to_contain_text(database["db_name"])
    await choose(choice, "url")
    await press(page.get_by_role("button", name="Hide the password"))
    await check_gone(page, password)
    await press(page.get_by_role("button", name="Show the password"))
    await page.locator("dd code", has_text=password).wait_for()
    await page.evaluate(HIDE)
    await page.get_by_role("button", name="Show the password").wait_for()
    await check_gone(page, password)

    await press(page.get_by_role("link", name="Overview"))
    await page.get_by_role("heading", name="What it is").wait_for()
    await check_gone(page, password)
    await page.go_back()
    await page.get_by_role("button", name="Show the password").wait_for()
    await check_gone(page, password)


@both_engines
async def test_a_rotation_and_users(visit: Visit, engine: str) -> None:
    database = await made(visit, db_type=engine)
    page = await visit.open(f"/databases/{database['uuid']}/users")
    await page.get_by_text("No further users").wait_for()
    await check_accessible(page)

    new = await given(page, "Rotate the password", "Rotate")
    changed = dict(database)
    changed["connection_string"] = database["connection_string"].replace(
        f"{database['db_username']}:{database['db_password']}@", f"{new['user']}:{new['password']}@"
    )
    assert new["password"] != database["db_password"]
    assert not await refused(changed)
    assert not await refused(database), "both work meanwhile"
    await page.get_by_text("Another rotation can begin when it has ended.").wait_for()
    await expect(page.get_by_role("button", name="Rotate the password")).to_be_disabled()
    await check_accessible(page)
    await do(page, "End the overlap now")
    await expect(page.get_by_role("button", name="End the overlap now")).to_have_count(0)
    assert await refused(database)

    user = await given(page, "New user", "Make the user", Name="reporting")
    changed["connection_string"] = database["connection_string"].replace(
        f"{database['db_username']}:{database['db_password']}@", f"{user['user']}:{user['password']}@"
    )
    assert not await refused(changed)
    assert await refused(changed, "CREATE TABLE t (i int)"), "it reads only"
    await page.get_by_role("cell", name="reporting").first.wait_for()
    renewed = await given(page, "New password", "Replace the password")
    assert renewed["user"] == user["user"]
    assert await refused(changed)
    changed["connection_string"] = changed["connection_string"].replace(user["password"], renewed["password"])
    assert not await refused(changed)
    await check_gone(page, new["password"], user["password"], renewed["password"])
    await do(page, "Drop", Type_reporting_to_confirm="reporting")
    await page.get_by_text("No further users").wait_for()
    assert await refused(changed)


async def given(page: Page, action: str, confirm: str, **fields: str) -> dict[str, str]:
    """What an action shows once."""
    dialog = await begin(page, action)
    await fill(dialog, **fields)
    await press(dialog.get_by_role("button", name=confirm, exact=True))
    await dialog.get_by_text("it isn't shown here again").wait_for()
    await dialog.get_by_role("button", name="Hide the password").wait_for()
    await check_accessible(page)
    # What was asked for goes when nobody looks; what is given only now stays.
    await press(dialog.get_by_role("button", name="Show the URL"))
    await dialog.get_by_text("://").wait_for()
    await page.evaluate(HIDE)
    await expect(dialog.get_by_text("://")).to_have_count(0)
    user, password = [await dialog.locator("dd").nth(index).locator("code").inner_text() for index in (0, 1)]
    await press(dialog.get_by_role("button", name="Done"))
    await expect(dialog).to_have_count(0)
    await check_gone(page, password)
    return {"user": user, "password": password}


async def said(command: str) -> str:
    environment: Any = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    process = await asyncio.create_subprocess_shell(
        command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode()
