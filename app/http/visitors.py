"""Requests of people who are about to sign in: nobody known sends them."""

from contextlib import ExitStack

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.audit.drafts import drafting
from app.core import context
from app.core.errors import AppError, NotFound
from app.http.addresses import NO_STORE, address_of
from app.http.auditing import request_draft
from app.http.state import RequestControls
from app.web.event_streams import HELD
from app.web.operation import CHANGING
from app.web.site import PROTECTIVE_HEADERS, check_own_change, check_own_page


class Visitors:
    """Lets requests through that come from a page of ours, so many of one address a minute. Raises `NotFound` where
    there is no console, `CrossOriginRefused`, `TooManyInFlight` or `RateLimitExceeded`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        controls: RequestControls = scope["litestar_app"].state.controls
        if controls.site is None:
            raise NotFound("path")
        headers = Headers.from_scope(scope)
        address = address_of(scope, headers, controls.trusted_proxies)
        scope["state"]["client_address"] = address
        scope["user"] = None
        with ExitStack() as held:
            scope["state"][HELD] = held
            held.enter_context(controls.in_flight.of_address(address))
            try:
                origin = controls.site.origin(scope, headers)
                if scope["method"] in CHANGING:
                    check_own_change(headers, origin)
                    controls.attempts.count(address)
                else:
                    check_own_page(scope["method"], headers, origin)
            except AppError as refusal:
                refusal.headers |= {name.decode(): value.decode() for name, value in PROTECTIVE_HEADERS}
                raise
            actor = context.actor.set(None)
            try:
                with drafting(request_draft(scope, address, None, refusals=0)):
                    await self._app(scope, receive, _protecting(send))
            finally:
                context.actor.reset(actor)


def _protecting(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *PROTECTIVE_HEADERS, NO_STORE]
        await send(message)

    return send_with_headers
