"""Pictures of every page, for somebody to look at: `make screenshots` writes them. They hold nothing by themselves."""

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.console.browser import Console
from tests.console.routes import routes
from tests.console.world import World

WIDTHS = (360, 768, 1440)
FOLDER = os.environ.get("HEADWATER_SCREENSHOTS")


@pytest.mark.soak
@pytest.mark.skipif(FOLDER is None, reason="HEADWATER_SCREENSHOTS names no folder for them")
async def test_pictures_of_every_page(console: Console, world: World) -> None:
    folder = Path(FOLDER or "")
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    for who, caller in (("owner", world.owner), ("viewer", world.viewer)):
        async with console.person(caller) as visit:
            visit.watch.expect(403, 404)
            for route in routes():
                page = await visit.open(world.address(route))
                await _pictures(page, folder, f"{who}{route.replace('/', '-').replace(':', '')}")


async def _pictures(page: Page, folder: Path, name: str) -> None:
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_load_state("networkidle")
        await page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    await page.emulate_media(color_scheme="dark")
    await page.screenshot(path=folder / f"{name}-{WIDTHS[-1]}-dark.png", full_page=True)
    await page.emulate_media(color_scheme=None)
