"""The API and the worker are killed under a page, or an engine stops: the page says so, goes on by itself when it is
back, and nothing is done twice. By the keyboard alone."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import BrowserContext, Error, Locator, Page, Route, expect

from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press, tab_to, write
from tests.console.steps import begin, made
from tests.support.answers import data_of, error_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.model_server import script, sql
from tests.support.ports import free_port
from tests.support.waiting import until

LOST = "Connection lost, retrying"
NAMES = ("applied", "backed", "restored", "rotated")


@dataclass(frozen=True)
class Flow:
    """Something that a person does. `prepare` goes as far as what is pressed last; `ended` waits until the page says
    what became of it."""

    address: str
    asks: str
    """The path below `/api/v1`."""
    prepare: Callable[[Page], Awaitable[Locator]]
    ended: Callable[[Page], Awaitable[None]]
    keyless: bool = False
    """The API takes no Idempotency-Key for it: the page doesn't repeat it, and says that no answer came."""


async def test_whatever_a_person_does_is_done_once(console: Console) -> None:
    """Each in a page of its own: the API and the worker are killed before the last press, and when they are back the
    first answer to each is lost as well."""
    service = console.service
    async with console.person(await service.caller(scopes=OPERATOR_TOO)) as visit:
        things = await prepared(visit)
        visit.watch.expect_losses()
        visit.watch.expect(422)
        lost = await lose_first_answers(visit.context)
        begun: list[tuple[Page, Flow, Locator]] = []
        for flow in flows(things):
            page = await visit.context.new_page()
            await page.goto(f"/console{flow.address}")
            begun.append((page, flow, await flow.prepare(page)))
        try:
            await service.kill("worker")
            await service.kill("api")
            for _, _, last in begun:
                await press(last)
                # It shows that it is under way, and who presses again asks nothing more.
                await last.page.keyboard.press("Enter")
            for page, _, _ in begun:
                await expect(page.locator(".connection")).to_contain_text(LOST)
            await check_accessible(begun[0][0])
        finally:
            await service.start_stopped()
        for page, flow, _ in begun:
            await flow.ended(page)
            await expect(page.locator(".connection")).to_have_count(0)
            # It reads what it shows again and again.
            await page.close()
        assert {flow.asks for _, flow, _ in begun if not flow.keyless} <= set(lost.values())
        await check_once(visit.caller, things)


async def lose_first_answers(context: BrowserContext) -> dict[str, str]:
    """Of every change, which the API has made; the paths of those that lost one, by their Idempotency-Keys."""
    lost: dict[str, str] = {}

    async def handle(route: Route) -> None:
        key = route.request.headers.get("idempotency-key", "")
        if route.request.method == "GET" or key in lost:
            return await route.continue_()
        with contextlib.suppress(Error):
            # A browser adds this header after the routes.
            answer = await route.fetch(headers=route.request.headers | {"Sec-Fetch-Site": "same-origin"})
            if answer.status != 403:
                lost[key] = urlsplit(route.request.url).path.removeprefix("/api/v1")
        return await route.abort("connectionreset")

    await context.route("**/api/v1/**", handle)
    return lost


async def prepared(visit: Visit) -> dict[str, Any]:
    """What they are done to: a database for each that would wait for another's."""
    caller = visit.caller
    assert caller is not None
    made = dict(zip(NAMES, await asyncio.gather(*(caller.created(name) for name in NAMES)), strict=True))
    at = f"/databases/{made['restored']['uuid']}/backups"
    await caller.post(at, {})
    blueprint = {"name": "once", "sql_content": "CREATE TABLE t (id integer);"}
    applied = data_of(await caller.post("/blueprints", blueprint), 201)
    endpoint = data_of(await caller.post("/webhook_endpoints", {"url": "https://hooks.example.com/test"}), 201)

    async def backed_up() -> bool:
        return [one["status"] for one in data_of(await caller.get(at))] == ["completed"]

    await until(backed_up)
    return made | {"blueprint": applied, "endpoint": endpoint}


def flows(things: dict[str, Any]) -> list[Flow]:
    uuid = {name: thing.get("uuid") for name, thing in things.items()}
    endpoint = f"{things['endpoint']['id']}"
    applied, backed, restored, rotated = (f"/databases/{uuid[name]}" for name in NAMES)
    run = f"/blueprints/{uuid['blueprint']}/run?database={uuid['applied']}"
    return [
        Flow("/blueprints/new", "/blueprints", write_blueprint, sees("link", "Change")),
        Flow("/webhooks/new", "/webhook_endpoints", name_endpoint, sees("link", "To the endpoint")),
        Flow(
            f"/webhooks/{endpoint}",
            f"/webhook_endpoints/{endpoint}/test_deliveries",
            presses("Send a test"),
            is_told,
            keyless=True,
        ),
        Flow(f"/questions?database={uuid['applied']}", "/query_executions", ask, is_told, keyless=True),
        Flow(run, f"{applied}/blueprint_applications", confirms("Apply", "Apply"), says("applied")),
        Flow(f"{backed}/backups", f"{backed}/backups", confirms("Take a backup", "Take it"), says("completed")),
        Flow(
            f"{restored}/backups",
            f"{restored}/restorations",
            confirms("Restore into this database", "Restore", "restored"),
            says("succeeded"),
        ),
        Flow(
            f"{rotated}/users",
            f"{rotated}/credential_rotations",
            confirms("Rotate the password", "Rotate"),
            says("Keep it now: it isn't shown here again."),
        ),
        Flow("/operator/hosts", "/operator/hosts", name_host, refuses),
    ]


def sees(role: Literal["link"], name: str) -> Callable[[Page], Awaitable[None]]:
    return lambda page: page.get_by_role(role, name=name).first.wait_for()


def says(text: str) -> Callable[[Page], Awaitable[None]]:
    return lambda page: page.locator("main, dialog").get_by_text(text, exact=True).first.wait_for()


def presses(button: str) -> Callable[[Page], Awaitable[Locator]]:
    async def prepare(page: Page) -> Locator:
        found = page.get_by_role("button", name=button)
        await found.wait_for()
        return found

    return prepare


def confirms(action: str, confirm: str, typed: str = "") -> Callable[[Page], Awaitable[Locator]]:
    async def prepare(page: Page) -> Locator:
        dialog = await begin(page, action)
        if typed:
            await write(dialog.get_by_label(f"Type {typed} to confirm"), typed)
        return dialog.get_by_role("button", name=confirm, exact=True)

    return prepare


async def write_blueprint(page: Page) -> Locator:
    await write(page.get_by_label("Name", exact=True), "written")
    await tab_to(page.get_by_role("textbox", name="SQL", exact=True))
    await page.keyboard.insert_text("CREATE TABLE t (id integer);")
    await page.get_by_text("1 statement for").wait_for()
    return page.get_by_role("button", name="Create")


async def name_endpoint(page: Page) -> Locator:
    await write(page.get_by_label("URL"), "https://hooks.example.com/once")
    return page.get_by_role("button", name="Create")


async def ask(page: Page) -> Locator:
    await page.get_by_text("questions left today").wait_for()
    await write(page.get_by_label("Question or order"), script(sql("SELECT 40 + 2 AS answer")))
    return page.get_by_role("button", name="Show the SQL")


async def is_told(page: Page) -> None:
    await page.locator(".error-note").get_by_text("No answer came").wait_for()


async def name_host(page: Page) -> Locator:
    """Where nobody answers: one that is registered here would be everybody's."""
    dialog = await begin(page, "Add a host")
    fields = {"Region": "nowhere-1", "Administrator's host": "127.0.0.1", "Administrator's user": "nobody"}
    for label, value in {**fields, "Administrator's port": str(free_port())}.items():
        await write(dialog.get_by_label(label), value)
    return dialog.get_by_role("button", name="Add it")


async def refuses(page: Page) -> None:
    await page.get_by_role("dialog").locator(".error-note").get_by_text("req_").wait_for()


async def check_once(caller: Caller | None, things: dict[str, Any]) -> None:
    assert caller is not None
    uuid = {name: thing.get("uuid") for name, thing in things.items()}

    async def listed(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = data_of(await caller.get(path))
        return found

    own = [one["name"] for one in await listed("/blueprints") if not one["is_system_blueprint"]]
    assert sorted(own) == ["once", "written"]
    assert len(await listed("/webhook_endpoints")) == 2
    # Nobody was there when these were asked.
    assert await listed(f"/webhook_endpoints/{things['endpoint']['id']}/deliveries?event_type=ping") == []
    assert await listed("/query_executions") == []
    assert len(await listed(f"/databases/{uuid['applied']}/blueprint_applications")) == 1
    assert len(await listed(f"/databases/{uuid['backed']}/backups")) == 1
    # A restore keeps what was there before.
    kinds = [one["type"] for one in await listed(f"/operations?database_uuid={uuid['restored']}")]
    assert kinds.count("restore") == 1
    assert len(await listed(f"/databases/{uuid['rotated']}/credential_rotations")) == 1
    assert [one["name"] for one in await listed("/databases") if one["uuid"] not in uuid.values()] == []


async def test_what_takes_no_key_is_not_repeated(visit: Visit) -> None:
    """Its answer is lost: the page says so, and shows what became of it when it is looked at."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    database = await made(visit)
    endpoint = data_of(await caller.post("/webhook_endpoints", {"url": "https://hooks.example.com/test"}), 201)
    visit.watch.expect_losses()
    visit.watch.expect(409)
    lost = await lose_first_answers(visit.context)
    await visit.open(f"/webhooks/{endpoint['id']}")
    await press(page.get_by_role("button", name="Send a test"))
    await is_told(page)
    await page.get_by_role("link", name="ping").wait_for()
    await visit.open(f"/questions?database={database['uuid']}")
    last = await ask(page)
    await press(last)
    await is_told(page)
    await page.get_by_text("499 of 500 questions left today").wait_for()
    await expect(page.locator(".connection")).to_have_count(0)
    await press(last)
    run = page.get_by_role("button", name="Run it")
    await press(run)
    await is_told(page)
    await press(run)
    await page.locator(".error-note").get_by_text("query_already_executed").wait_for()
    await check_accessible(page)
    assert len(lost) == 3
    assert len(data_of(await caller.get(f"/webhook_endpoints/{endpoint['id']}/deliveries?event_type=ping"))) == 1
    outcomes = [one["outcome"] for one in data_of(await caller.get("/query_executions"))]
    assert sorted(outcomes) == ["executed", "succeeded", "translated"]


async def test_a_change_of_a_blueprint_is_not_repeated(visit: Visit) -> None:
    """Nor its deletion: neither takes a key, and a second deletion would say that there is no such blueprint."""
    page, caller = visit.page, visit.caller
    assert caller is not None
    blueprint = {"name": "once", "sql_content": "CREATE TABLE t (id integer);"}
    uuid = data_of(await caller.post("/blueprints", blueprint), 201)["uuid"]
    visit.watch.expect_losses()
    await lose_first_answers(visit.context)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.method) if one.url.endswith(uuid) and one.method != "GET" else None)
    await visit.open(f"/blueprints/{uuid}/change")
    await page.get_by_text("1 statement for").wait_for()
    await write(page.get_by_label("Description"), "Changed")
    await press(page.get_by_role("button", name="Save"))
    await is_told(page)
    assert data_of(await caller.get(f"/blueprints/{uuid}"))["description"] == "Changed"
    await visit.open(f"/blueprints/{uuid}")
    await press(await confirms("Delete", "Delete", "once")(page))
    await is_told(page)
    await expect(page.locator(".connection")).to_have_count(0)
    await check_accessible(page)
    assert asked == ["PATCH", "DELETE"]
    error_of(await caller.get(f"/blueprints/{uuid}"), 404, "not_found")


async def test_an_engine_that_stops_and_goes_on(visit: Visit) -> None:
    service, page, caller = visit.console.service, visit.page, visit.caller
    assert caller is not None
    if service.mysql is None:
        pytest.skip("no MySQL or MariaDB on this machine")
    asked = await made(visit, db_type="mysql")
    visit.watch.expect(503)
    await visit.open(f"/questions?database={asked['uuid']}")
    await page.get_by_text("questions left today").wait_for()
    await write(page.get_by_label("Question or order"), script(sql("SELECT 40 + 2 AS answer")))
    with stopped(service.mysql.pid):
        await press(page.get_by_role("button", name="Show the SQL"))
        await page.locator(".error-note").get_by_text(re.compile(r"req_\w+")).wait_for()

        await visit.open("/databases/new")
        await write(page.get_by_label("Name"), "patient")
        await choose(page.get_by_label("Engine"), "mysql")
        await press(page.get_by_role("button", name="Create database"))
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
