"""Every text that the API answers is markup, and every address a script: no page takes one for such."""

import re
from typing import Any

from playwright.async_api import Page, Route

from tests.console.browser import Console
from tests.console.routes import routes
from tests.console.test_every_page import check_texts, opened
from tests.console.world import MARKUP, World

_OURS = re.compile(r"[0-9a-f-]{36}|\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:\d\d)?")
"""Identifiers and times, which nobody else writes."""
_WORDS = {
    "code",
    "class",
    "db_type",
    "dialects",
    "engine",
    "kind",
    "names",
    "object",
    "outcome",
    "role",
    "severity",
    "status",
    "type",
    "unit",
    "value",
    "method",
}
"""Fields with one of the API's own words."""
_LINKS = (
    "() => [...document.querySelectorAll('[href], [src], [action]')].map((one) => one.href || one.src || one.action)"
)


def spoiled(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: spoiled(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [spoiled(item, name) for item in value]
    if value is None and name.endswith("_url"):
        return "javascript:document.body.dataset.owned=1"
    if not isinstance(value, str) or name in _WORDS or _OURS.fullmatch(value):
        return value
    return f"javascript:document.body.dataset.owned=1//{value}" if "://" in value else value + MARKUP


async def spoil(route: Route) -> None:
    request = route.request
    if request.method != "GET" or request.url.endswith("/events"):
        return await route.continue_()
    answer = await route.fetch()
    if "json" not in answer.headers.get("content-type", ""):
        return await route.fulfill(response=answer)
    return await route.fulfill(response=answer, json=spoiled(await answer.json()))


async def check_links(page: Page) -> None:
    for link in await page.evaluate(_LINKS):
        assert re.match("https?:", link), f"{page.url}: {link}"


async def test_no_page_takes_a_text_for_markup(console: Console, world: World) -> None:
    async with console.person(world.owner) as visit:
        await visit.context.route("**/api/v1/**", spoil)
        seen = 0
        for route in routes():
            page = await opened(visit, world.address(route))
            await check_texts(page)
            await check_links(page)
            seen += MARKUP in await page.inner_text("main")
        assert seen > 25, "most of them show some"
