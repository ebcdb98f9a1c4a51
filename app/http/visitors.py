"""Requests of people who are about to sign in, and are not known yet."""

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from app.accounts.sessions.attempts import count_attempt
from app.audit.drafts import drafting
from app.core import context
from app.core.errors import AppError, NotFound
from app.http.addresses import NO_STORE, address_of
from app.http.auditing import request_draft
from app.http.requests import add_headers
from app.http.state import RequestControls
from app.web.held import STATE, Held
from app.web.operation import CHANGING
from app.web.site import PROTECTIVE_HEADERS, check_own_change, check_own_page


class Visitors:
    """Lets requests through that come from a page of ours; of those that may change something, only so many a minute
    from one address. Raises `NotFound` where there is no console, `CrossOriginRefused`, `TooManyInFlight` or
    `RateLimitExceeded`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        controls: RequestControls = scope["litestar_app"].state.controls
        headers = Headers.from_scope(scope)
        state = scope["state"]
        address = state["client_address"] = address_of(scope, controls.trusted_proxies)
        scope["user"] = None
        held = state[STATE] = Held()
        try:
            controls.in_flight.enter_address(held, address)
            await _check(controls, scope, headers, address)
            add_headers(scope, (*PROTECTIVE_HEADERS, NO_STORE))
            actor = context.actor.set(None)
            try:
                with drafting(request_draft(scope, address, None, refusals=0)):
                    await self._app(scope, receive, send)
            finally:
                context.actor.reset(actor)
        finally:
            held.release()


async def _check(controls: RequestControls, scope: HTTPScope, headers: Headers, address: str) -> None:
    if controls.site is None:
        raise NotFound("path")
    try:
        origin = controls.site.origin(scope, headers)
        if scope["method"] in CHANGING:
            check_own_change(headers, origin)
            await count_attempt(address)
        else:
            check_own_page(scope["method"], headers, origin)
    except AppError as refusal:
        refusal.headers |= {name.decode(): value.decode() for name, value in PROTECTIVE_HEADERS}
        raise
