"""The API is killed under a page, or an engine stops: the page says so, goes on by itself when it is back, and nothing
is done twice."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.async_api import expect

from tests.console.accessible import check_accessible
from tests.console.browser import Visit
from tests.console.steps import made
from tests.support.answers import data_of
from tests.support.model_server import script, sql

LOST = "Connection lost, retrying"


async def test_a_blueprint_an_endpoint_and_a_question(visit: Visit) -> None:
    service, page, caller = visit.console.service, visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    visit.watch.expect_losses()
    lost = page.locator(".connection")

    await visit.open("/blueprints/new")
    await page.get_by_label("Name", exact=True).fill("once")
    await page.get_by_role("textbox", name="SQL", exact=True).click()
    await page.keyboard.insert_text("CREATE TABLE t (id integer);")
    await page.get_by_text("1 statement for").wait_for()
    await service.kill("api")
    await page.get_by_role("button", name="Create").click()
    await expect(lost).to_contain_text(LOST)
    await check_accessible(page)
    await service.start("api")
    await page.get_by_role("link", name="Change").wait_for()
    await expect(lost).to_have_count(0)
    own = [one for one in data_of(await caller.get("/blueprints")) if not one["is_system_blueprint"]]
    assert [one["name"] for one in own] == ["once"]

    await visit.open("/webhooks/new")
    await page.get_by_label("URL").fill("https://hooks.example.com/once")
    await service.kill("api")
    await page.get_by_role("button", name="Create").click()
    await expect(lost).to_contain_text(LOST)
    await service.start("api")
    await page.get_by_role("link", name="To the endpoint").click()
    # Its page reads its endpoint again and again.
    await page.get_by_role("button", name="Send a test").wait_for()
    await service.kill("api")
    await expect(lost).to_contain_text(LOST)
    await service.start("api")
    await expect(lost).to_have_count(0)
    assert len(data_of(await caller.get("/webhook_endpoints"))) == 1

    await visit.open(f"/questions?database={database['uuid']}")
    await page.get_by_text("questions left today").wait_for()
    await page.get_by_label("Question or order").fill(script(sql("SELECT 40 + 2 AS answer")))
    await service.kill("api")
    await page.get_by_role("button", name="Show the SQL").click()
    await expect(lost).to_contain_text(LOST)
    await service.start("api")
    panel = page.get_by_role("region", name="Answer")
    await panel.get_by_role("button", name="Run it").click()
    await panel.get_by_role("cell", name="42").wait_for()
    await expect(lost).to_have_count(0)
    asked = data_of(await caller.get("/query_executions"))
    assert sorted(one["outcome"] for one in asked) == ["executed", "succeeded"]


async def test_an_engine_that_stops_and_goes_on(visit: Visit) -> None:
    service, page, caller = visit.console.service, visit.page, visit.caller
    assert caller is not None
    if service.mysql is None:
        pytest.skip("no MySQL or MariaDB on this machine")
    asked = await made(visit, db_type="mysql")
    visit.watch.expect(503)
    await visit.open(f"/questions?database={asked['uuid']}")
    await page.get_by_text("questions left today").wait_for()
    await page.get_by_label("Question or order").fill(script(sql("SELECT 40 + 2 AS answer")))
    with stopped(service.mysql.pid):
        await page.get_by_role("button", name="Show the SQL").click()
        await page.locator(".error-note").get_by_text(re.compile(r"req_\w+")).wait_for()

        await visit.open("/databases/new")
        await page.get_by_label("Name").fill("patient")
        await page.get_by_label("Engine").select_option("mysql")
        await page.get_by_role("button", name="Create database").click()
        await page.locator(".steps .reason", has_text="host_").wait_for()
        await check_accessible(page)
    await page.get_by_role("heading", name="patient", exact=True).wait_for()
    names = [one["name"] for one in data_of(await caller.get("/databases"))]
    assert sorted(names) == ["orders", "patient"]


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """It answers nobody for the block, and its connections stay open."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)
