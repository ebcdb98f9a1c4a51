"""Counts and times requests by route, and writes a log line for each."""

import time
from functools import cache

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import Counter, Histogram

from app.core.metrics.counters import HTTP_REQUEST_SECONDS, HTTP_REQUESTS
from app.http.access_log import log_request

_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Wraps the whole application. Labels have few values, whatever clients send: all unknown paths or methods share
    one label."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status: int | None = None
        completed = False

        async def send_noting_status(message: Message) -> None:
            nonlocal status, completed
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)
            if message["type"] == "http.response.body":
                completed = not message.get("more_body")

        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = scope.get("path_template") or "unmatched"
            seconds = time.perf_counter() - began
            requests, durations = _series(method, route, status)
            requests.inc()
            durations.observe(seconds)
            log_request(scope, method=method, route=route, status=status, completed=completed, seconds=seconds)


@cache
def _series(method: str, route: str, status: int | None) -> tuple[Counter, Histogram]:
    """Cached, because looking up labels costs more than counting."""
    answer = "unanswered" if status is None else str(status)
    return HTTP_REQUESTS.labels(method, route, answer), HTTP_REQUEST_SECONDS.labels(method, route)
