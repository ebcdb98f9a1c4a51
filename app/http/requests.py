"""The outermost layer: each request's id, its metrics, its line in the log, and the headers of its answer."""

import time
from collections.abc import Iterable
from functools import cache

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import Counter, Histogram

from app.core import context, ids
from app.core.metrics.counters import HTTP_REQUEST_SECONDS, HTTP_REQUESTS
from app.http.access_log import log_request
from app.http.tracing import describe_request

_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
_HEADERS = "answer_headers"
"""The key in a request's state for headers that its answer gets, whichever it is."""


def add_headers(scope: Scope, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Has the answer to this request sent with these, in place of those that were added before."""
    scope["state"][_HEADERS] = headers


class Requests:
    """Wraps the whole application, so that answers to unknown paths and unexpected errors have an id too, and count.
    Labels have few values, whatever clients send: all unknown paths or methods share one label. One layer does all of
    it, because each layer that wraps `send` costs every request one call more for each part of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = ids.request_id()
        status: int | None = None
        completed = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, completed
            if message["type"] == "http.response.start":
                status = message["status"]
                added = (scope.get("state") or {}).get(_HEADERS, ())
                message["headers"] = [*message.get("headers", ()), *added, (b"x-request-id", request_id.encode())]
            await send(message)
            if message["type"] == "http.response.body":
                completed = not message.get("more_body")

        token = context.request_id.set(request_id)
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = scope.get("path_template") or "unmatched"
            seconds = time.perf_counter() - began
            requests, durations = _series(method, route, status)
            requests.inc()
            durations.observe(seconds)
            describe_request(scope, method=method, route=route, status=status)
            log_request(scope, method=method, route=route, status=status, completed=completed, seconds=seconds)
            context.request_id.reset(token)


@cache
def _series(method: str, route: str, status: int | None) -> tuple[Counter, Histogram]:
    """Cached, because looking up labels costs more than counting."""
    answer = "unanswered" if status is None else str(status)
    return HTTP_REQUESTS.labels(method, route, answer), HTTP_REQUEST_SECONDS.labels(method, route)
