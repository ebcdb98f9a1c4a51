"""Pictures: of every page, for somebody to look at, and those of the documentation. `make screenshots` writes them.
They hold nothing by themselves."""

import asyncio
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page, ViewportSize

from app.store.session import execute
from tests.applications.support import saved
from tests.console.browser import Console, Visit
from tests.console.routes import routes
from tests.console.world import World
from tests.support.answers import body_of, data_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

WIDTHS = (360, 768, 1100, 1440)
FOLDER = os.environ.get("HEADWATER_SCREENSHOTS")
SMALL = ViewportSize(width=1085, height=640)
"""Of the documentation's pictures."""
SCHEMA = """\
CREATE TABLE {{table}} (
  id integer PRIMARY KEY,
  placed_at timestamp NOT NULL,
  total numeric(12, 2) NOT NULL
);
CREATE INDEX placed ON {{table}} (placed_at);
INSERT INTO {{table}} VALUES (1, '2026-11-20 08:00:00', 12.50);
"""
MEASURED = """
INSERT INTO metric_samples (database_id, at, storage_bytes, connections, transactions)
SELECT (SELECT id FROM databases WHERE uuid = $1), date_trunc('minute', now()) - make_interval(mins => n),
       8000000 + 90000 * (60 - n), 4 + round(3 * sin(n / 7.0)), 900 + round(400 * cos(n / 9.0))
FROM generate_series(1, 59) AS n WHERE n NOT BETWEEN 20 AND 24
"""
taken = [pytest.mark.soak, pytest.mark.skipif(FOLDER is None, reason="HEADWATER_SCREENSHOTS names no folder for them")]
pytestmark = taken


async def test_pictures_of_every_page(console: Console, world: World) -> None:
    folder = await made(Path(FOLDER or ""))
    for who, caller in (("owner", world.owner), ("viewer", world.viewer)):
        async with console.person(caller) as visit:
            visit.watch.expect(403, 404)
            for route in routes():
                page = await visit.open(world.address(route))
                await _pictures(page, folder, f"{who}{route.replace('/', '-').replace(':', '')}")


async def _pictures(page: Page, folder: Path, name: str) -> None:
    await page.emulate_media(color_scheme="light")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_load_state("networkidle")
        await page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    await page.emulate_media(color_scheme="dark")
    await page.screenshot(path=folder / f"{name}-{WIDTHS[-1]}-dark.png", full_page=True)


async def test_pictures_of_the_documentation(console: Console) -> None:
    folder = await made(Path(FOLDER or "") / "docs")
    owner = await console.service.caller(scopes=OPERATOR_TOO)
    databases = await a_team_at_work(console.service, owner)
    orders = f"/databases/{databases['orders']['uuid']}"
    async with console.person(owner, viewport=SMALL) as visit:
        await picture(visit, folder / "console.png", "/databases")
        await picture(visit, folder / "charts.png", f"{orders}/charts?span=3600")
        await picture(visit, folder / "backups.png", f"{orders}/backups", shown="Proven")
        blueprint = await saved(owner, SCHEMA, variables={"table": {"type": "identifier", "default": "orders"}})
        data_of(await owner.patch(f"/blueprints/{blueprint}", {"name": "orders, first tables"}))
        page = await visit.open(f"/blueprints/{blueprint}/run?database={databases['orders']['uuid']}")
        await page.get_by_role("button", name="Dry run").click()
        await page.get_by_role("region", name="Dry run").get_by_text("passed; nothing was changed").wait_for()
        await page.emulate_media(color_scheme="dark")
        await page.screenshot(path=folder / "dry-run.png")


async def picture(visit: Visit, path: Path, address: str, shown: str = "active") -> None:
    page = await visit.open(address)
    await page.emulate_media(color_scheme="light")
    await page.get_by_text(shown, exact=True).filter(visible=True).first.wait_for()
    await page.wait_for_load_state("networkidle")
    await page.screenshot(path=path)


async def a_team_at_work(service: RunningService, owner: Caller) -> dict[str, Any]:
    """Its databases by name: measured, backed up, paused."""
    async with store(service.control_dsn):
        await execute("UPDATE users SET name = 'Operator' WHERE id = $1", owner.user_id)
        await execute("UPDATE teams SET name = 'Shop' WHERE id = $1", owner.team_id)
    engines = {"orders": "postgres", "ledger": "postgres", "analytics": "mysql", "sessions": "postgres"}
    databases = {
        name: await owner.created(
            name,
            db_type=engine if service.mysql else "postgres",
            labels={"env": "staging" if name in ("ledger", "sessions") else "production", "owner": "shop"},
        )
        for name, engine in engines.items()
    }
    body_of(await owner.post(f"/databases/{databases['ledger']['uuid']}/pauses", None))
    orders = databases["orders"]["uuid"]
    async with store(service.control_dsn):
        await execute(MEASURED, UUID(orders))
    backup = data_of(await owner.post(f"/databases/{orders}/backups", {"description": "Before the new schema"}), 202)

    async def status(of: str) -> str:
        now = data_of(await owner.get(f"/backups/{backup['uuid']}"))
        return str(now["proof"]["status"] if of == "proof" else now["status"])

    await until(lambda: _is(status("backup"), "completed"))
    body_of(await owner.post(f"/backups/{backup['uuid']}/restore_tests", None), 202)
    await until(lambda: _is(status("proof"), "proven"))
    return databases


async def _is(asked: Any, value: str) -> bool:
    return bool(await asked == value)


async def made(folder: Path) -> Path:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    return folder
