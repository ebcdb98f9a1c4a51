"""What a browser's page must not do: write to its console, fail, ask another host, or ask what the API's description
doesn't have."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, WebError

_REFUSAL = re.compile(r"Failed to load resource: the server responded with a status of (?P<status>\d+)")
_LOSS = re.compile(r"Failed to load resource: net::ERR_|net::ERR_[A-Z_]+ \d+")
_OTHERS = ("/console", "/docs", "/openapi.json")
"""Pages, and the description itself."""


@cache
def _described() -> list[tuple[str, re.Pattern[str]]]:
    """The operations of the public API: methods and paths."""
    paths = json.loads(Path("docs/openapi.json").read_text())["paths"]
    return [
        (method.upper(), re.compile(re.sub(r"\\\{[^}]+\}", "[^/]+", re.escape(path))))
        for path, operations in paths.items()
        for method in operations
    ]


def is_public(method: str, path: str) -> bool:
    """Whether anybody's program may ask this too."""
    return path.startswith(_OTHERS) or any(method == one and its.fullmatch(path) for one, its in _described())


class Watch:
    """Collects what the pages of a context did wrong."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.faults: list[str] = []
        self._statuses: set[int] = set()
        self._losses = False
        self._hosts = [origin]
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def expect(self, *statuses: int) -> None:
        """The browser itself reports refused requests to its console. These the test causes."""
        self._statuses |= set(statuses)

    def expect_losses(self) -> None:
        """The same of connections that break: the test ends the API."""
        self._losses = True

    def expect_host(self, origin: str) -> None:
        """Where the test has the browser go besides. What a page there loads and says is its own affair."""
        self._hosts.append(origin)

    def check(self) -> None:
        assert not self.faults, "\n".join(self.faults)

    def _on_console(self, message: ConsoleMessage) -> None:
        refused = _REFUSAL.search(message.text)
        if refused and int(refused["status"]) in self._statuses:
            return
        if self._losses and (_LOSS.search(message.text) or (refused and refused["status"] in ("502", "503", "504"))):
            return
        where = message.location
        if where["url"].startswith(tuple(self._hosts[1:])):
            return
        self.faults.append(f"console {message.type}: {message.text} ({where['url']}:{where['lineNumber']})")

    def _on_error(self, error: WebError) -> None:
        self.faults.append(f"error: {error.error}")

    def _on_request(self, request: Request) -> None:
        if request.headers.get("referer", self._hosts[0]).startswith(tuple(self._hosts[1:])):
            return
        parts = urlsplit(request.url)
        if parts.scheme in ("data", "blob"):
            return
        if f"{parts.scheme}://{parts.netloc}" not in self._hosts:
            self.faults.append(f"request to another host: {request.url}")
        elif f"{parts.scheme}://{parts.netloc}" == self._hosts[0] and not is_public(request.method, parts.path):
            self.faults.append(f"request that is not of the public API: {request.method} {parts.path}")
