"""Authentication and limits for every request under `/api/v1`."""

from collections.abc import Sequence
from contextlib import ExitStack

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.audit.drafts import drafting
from app.auth.batches import Admitted, Allowance
from app.core import context
from app.core.errors import AppError, Unauthorized, rate_limit_headers
from app.http.addresses import NO_STORE, address_of
from app.http.auditing import recording_refusal, request_draft
from app.http.state import RequestControls
from app.web.event_streams import HELD
from app.web.site import PROTECTIVE_HEADERS, check_own_page, session_token

_Headers = Sequence[tuple[bytes, bytes]]


class Authenticate:
    """Sets the request's user, or raises the error of its key or its session. Adds what remains of the rate to the
    answer.

    A request with an Authorization header is its key's, whatever cookies it has: a browser adds those by itself, and
    the header only when a page of ours says so.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        controls: RequestControls = scope["litestar_app"].state.controls
        headers = Headers.from_scope(scope)
        address = address_of(scope, headers, controls.trusted_proxies)
        scope["state"]["client_address"] = address
        with ExitStack() as held:
            scope["state"][HELD] = held
            held.enter_context(controls.in_flight.of_address(address))
            authorization = _authorization(headers)
            admitted = (
                await _by_session(controls, scope, scope["method"], headers, address) if authorization is None else None
            )
            if admitted is None:
                admitted = await controls.admission.admit(authorization, address)
            caller = scope["user"] = admitted.principal
            if caller.session_id is None:
                held.enter_context(controls.in_flight.of_key(caller.key_id))
                actor = context.Actor(kind=context.ActorKind.KEY, user_id=caller.user_id, key_id=caller.key_id)
            else:
                held.enter_context(controls.in_flight.of_person(caller.user_id))
                actor = context.Actor(kind=context.ActorKind.SESSION, user_id=caller.user_id)
            token = context.actor.set(actor)
            more: _Headers = () if caller.session_id is None else PROTECTIVE_HEADERS
            try:
                draft = request_draft(scope, address, caller, refusals=controls.audit_refusals)
                if draft is None:
                    await self._admitted(scope, receive, send, admitted.allowance, more)
                else:
                    with drafting(draft):
                        await self._admitted(scope, receive, recording_refusal(scope, send), admitted.allowance, more)
            finally:
                context.actor.reset(token)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send, left: Allowance, more: _Headers) -> None:
        rate_limit = [
            (name.lower().encode(), value.encode())
            for name, value in rate_limit_headers(left.limit, left.remaining, left.resets_in).items()
        ]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *rate_limit, NO_STORE, *more]
            await send(message)

        await self._app(scope, receive, send_with_headers)


async def _by_session(
    controls: RequestControls, scope: Scope, method: str, headers: Headers, address: str
) -> Admitted | None:
    """None for a request without a session's cookie. Raises `CrossOriginRefused`, before anything is counted, and what
    `Admission.admit_session` does."""
    if controls.site is None or "cookie" not in headers:
        return None
    try:
        origin = controls.site.origin(scope, headers)
        token = session_token(headers, origin.cookie)
        if token is None:
            return None
        check_own_page(method, headers, origin)
        return await controls.admission.admit_session(token, address)
    except AppError as refusal:
        refusal.headers |= {name.decode(): value.decode() for name, value in PROTECTIVE_HEADERS}
        raise


def _authorization(headers: Headers) -> str | None:
    """Raises `Unauthorized` for several different headers: a proxy before us may have checked another one than we
    would."""
    values = set(headers.getall("Authorization", []))
    if len(values) > 1:
        raise Unauthorized("There are several Authorization headers. Send one.")
    return values.pop() if values else None
