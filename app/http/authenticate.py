"""Authentication and limits for every request under `/api/v1`."""

from contextlib import ExitStack

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.audit.drafts import drafting
from app.auth.admission import Allowance
from app.auth.client_address import Address, Network, client_address
from app.core import context
from app.core.errors import Unauthorized, rate_limit_headers
from app.http.auditing import record_refusal, request_draft
from app.http.state import RequestControls
from app.web.event_streams import HELD

_NO_STORE = (b"cache-control", b"no-store")
"""Answers hold passwords and short-lived data, so no cache may store them."""


class Authenticate:
    """Sets the request's user, or raises the key's error. Adds the key's remaining rate to the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        controls: RequestControls = scope["litestar_app"].state.controls
        headers = Headers.from_scope(scope)
        address = _address(scope, headers, controls.trusted_proxies)
        scope["state"]["client_address"] = address.compressed
        with ExitStack() as held:
            scope["state"][HELD] = held
            held.enter_context(controls.in_flight.of_address(address))
            admitted = await controls.admission.admit(_authorization(headers), address)
            caller = scope["user"] = admitted.principal
            held.enter_context(controls.in_flight.of_key(caller.key_id))
            token = context.actor.set(
                context.Actor(kind=context.ActorKind.KEY, user_id=caller.user_id, key_id=caller.key_id)
            )
            try:
                with drafting(request_draft(scope, address, caller, refusals=controls.audit_refusals)):
                    await self._admitted(scope, receive, send, admitted.allowance)
            finally:
                context.actor.reset(token)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send, left: Allowance) -> None:
        rate_limit = [
            (name.lower().encode(), value.encode())
            for name, value in rate_limit_headers(left.limit, left.remaining, left.resets_in).items()
        ]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await record_refusal(scope, message["status"])
                message["headers"] = [*message.get("headers", ()), *rate_limit, _NO_STORE]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _authorization(headers: Headers) -> str | None:
    """Raises `Unauthorized` for several different headers: a proxy before us may have checked another one than we
    would."""
    values = set(headers.getall("Authorization", []))
    if len(values) > 1:
        raise Unauthorized("There are several Authorization headers. Send one.")
    return values.pop() if values else None


def _address(scope: Scope, headers: Headers, trusted_proxies: tuple[Network, ...]) -> Address:
    client = scope["client"]
    forwarded_for = ",".join(headers.getall("X-Forwarded-For", [])) if trusted_proxies else None
    return client_address(client[0] if client else "", forwarded_for, trusted_proxies)
