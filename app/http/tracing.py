"""The span of each request, from its head to the end of its answer."""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from app.auth.client_address import Network, parse_address
from app.core import context
from app.core.tracing.context import SpanContext, current, parse_traceparent
from app.core.tracing.encoding import encoded_attributes
from app.core.tracing.spans import SpanKind, Tracer, TraceSpan
from app.http.access_log import caller_of, refusal_of, resource_of

_TRACEPARENT = b"traceparent"
_UNTRACED = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Paths that machines ask for every few seconds."""
_KEPT_CALLERS = 4096
"""How many callers are kept, of about a hundred bytes each."""


class TracedRequests:
    """The layer that begins a trace, or goes on with the one that a trusted proxy names. The trace that another client
    names becomes a link: such clients don't decide what we record, and can't write into a trace of somebody else's."""

    def __init__(self, app: ASGIApp, tracer: Tracer, trusted_proxies: Sequence[Network]) -> None:
        self._app = app
        self._tracer = tracer
        self._trusted = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        given = _given(scope["headers"])
        with self._begin(scope, given):
            await self._app(scope, receive, send)

    def _begin(self, scope: HTTPScope, given: SpanContext | None) -> TraceSpan:
        if given is None:
            return self._tracer.begin("request", SpanKind.SERVER)
        if self._is_trusted(scope):
            return self._tracer.begin("request", SpanKind.SERVER, parent=given)
        return self._tracer.begin("request", SpanKind.SERVER, links=(given,))

    def _is_trusted(self, scope: HTTPScope) -> bool:
        if not self._trusted or not scope["client"]:
            return False
        peer = parse_address(scope["client"][0])
        return any(peer in network for network in self._trusted)


def describe_request(scope: HTTPScope, *, method: str, route: str, status: int | None) -> None:
    """Describes in the current span, if there is one, what has become of the request. `method` and `route` are known
    ones, never a client's own text."""
    span = current.get()
    if span is None:
        return
    if route in _UNTRACED:
        span.kept = False
        return
    span.name, span.shared = _shared(method, route, status)
    span.set("headwater.request_id", context.current_request_id())
    caller, refusal = caller_of(scope), refusal_of(scope)
    if caller is not None:
        span.shared += _of_caller(caller.key_id, caller.team_ids[0] if caller.team_ids else None)
    if (resource := resource_of(scope)) is not None:
        span.set("headwater.resource", resource)
    if refusal is not None:
        span.set("error.type", refusal.code)
    span.failed = status is not None and status >= 500


@cache
def _shared(method: str, route: str, status: int | None) -> tuple[str, bytes]:
    """The span's name, and the attributes that many requests have in common, encoded."""
    common: dict[str, str | int] = {"http.request.method": method, "http.route": route}
    if status is not None:
        common["http.response.status_code"] = status
    return f"{method} {route}", encoded_attributes(common)


@lru_cache(maxsize=_KEPT_CALLERS)
def _of_caller(key_id: int, team_id: int | None) -> bytes:
    """The attributes that name the caller. Cached: each caller sends many requests."""
    caller: dict[str, str | int] = {"headwater.key_id": key_id}
    if team_id is not None:
        caller["headwater.team_id"] = team_id
    return encoded_attributes(caller)


def _given(headers: Iterable[tuple[bytes, bytes]]) -> SpanContext | None:
    """The span that the client names, if it names exactly one."""
    values = [value for name, value in headers if name == _TRACEPARENT]
    return parse_traceparent(values[0].decode("latin-1")) if len(values) == 1 else None
