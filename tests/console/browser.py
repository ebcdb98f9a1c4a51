"""A real Chromium, and the console in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect

from tests.console.install_chromium import find_chromium
from tests.console.watch import Watch
from tests.support.client import Caller
from tests.support.people import sign_in
from tests.support.service import RunningService

_OPTIONS = (
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Pages live for seconds: to compile what they run often takes more processor time than it gives back.
    "--js-flags=--no-turbofan --no-maglev",
)
WIDE, NARROW = ViewportSize(width=1440, height=900), ViewportSize(width=360, height=780)
_SECONDS = 60
"""A wait's limit, far beyond what it takes."""
_KEPT = """
() => [...Object.keys(localStorage), ...Object.keys(sessionStorage), ...Object.keys(history.state ?? {})]
"""
_MAY_KEEP = {"headwater.theme", "again"}
"""The latter says of an address that its page was loaded twice."""


@asynccontextmanager
async def chromium(*, keeping_pages: bool = False) -> AsyncIterator[Browser]:
    """Skips the test on a machine without one. `keeping_pages`: one that keeps pages that were left, to show them again
    as they were, as browsers do when they aren't driven."""
    program = find_chromium(keeping_pages=keeping_pages)
    if program is None:
        pytest.skip("no Chromium on this machine; `make test` installs one as root or with sudo")
    expect.set_options(timeout=1000 * _SECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program,
            args=_OPTIONS,
            ignore_default_args=["--disable-back-forward-cache"] if keeping_pages else [],
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(frozen=True)
class Console:
    """The console of one running service, and a browser."""

    service: RunningService
    browser: Browser

    @property
    def origin(self) -> str:
        return str(self.service.http.base_url).rstrip("/")

    async def new_context(self, **options: Any) -> BrowserContext:
        """Where nothing turns while something is awaited: to draw that takes as much processor time as all the rest."""
        return await self.browser.new_context(**({"viewport": WIDE, "reduced_motion": "reduce"} | options))

    @asynccontextmanager
    async def visitor(self, **options: Any) -> AsyncIterator["Visit"]:
        """Somebody with a browser of their own who isn't signed in. `options` are a context's. At the end nothing may
        have been written to the browser's console, failed, or gone to another host, nor be kept but the theme."""
        context = await self.new_context(base_url=self.origin, **options)
        context.set_default_timeout(1000 * _SECONDS)
        watch = Watch(context, self.origin)
        try:
            page = await context.new_page()
            yield Visit(self, context, page, watch)
            watch.check()
            if page.url.startswith(f"{self.origin}/console"):
                assert set(await page.evaluate(_KEPT)) <= _MAY_KEEP
        finally:
            await context.close()

    @asynccontextmanager
    async def person(self, caller: Caller | None = None, **options: Any) -> AsyncIterator["Visit"]:
        """The same, signed in: a new user who owns a team of their own, or the user of that key."""
        async with self.visitor(**options) as visit:
            visit.caller = caller or await self.service.caller()
            await visit.sign_in(visit.caller)
            yield visit


@dataclass
class Visit:
    """One browser context with one page. More pages are `context.new_page()`."""

    console: Console
    context: BrowserContext
    page: Page
    watch: Watch
    caller: Caller | None = None

    async def sign_in(self, caller: Caller) -> None:
        """By a link, whose cookie this browser gets."""
        service, origin = self.console.service, self.console.origin
        person = await sign_in(service.http, service.control_dsn, caller)
        cookie = {"name": person.cookie, "value": person.token, "url": origin, "httpOnly": True, "sameSite": "Strict"}
        await self.context.add_cookies([cookie])  # type: ignore[list-item]  # this is a cookie's shape

    async def open(self, path: str) -> Page:
        """A page of the console, such as `/databases`, when its heading is there."""
        await self.page.goto(f"/console{path}")
        await self.page.locator("main h1").wait_for()
        return self.page
