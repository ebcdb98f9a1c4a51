"""Authentication and limits for every request under `/api/v1`."""

from collections.abc import Sequence
from time import monotonic

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Receive, ReceiveMessage, Scope, Send

from app.audit.drafts import drafting
from app.auth import standing
from app.auth.batches import Admitted
from app.auth.principal import Principal
from app.core import context
from app.core.errors import AppError, Unauthorized, rate_limit_values
from app.http.addresses import NO_STORE, address_of
from app.http.auditing import recording_refusal, request_draft
from app.http.in_flight import InFlight
from app.http.requests import add_headers
from app.http.state import RequestControls
from app.web.admitted import ADMITTED
from app.web.held import STATE, Held
from app.web.operation import CHANGING
from app.web.site import PROTECTIVE_HEADERS, check_own_page, session_token

_Headers = Sequence[tuple[bytes, bytes]]


class Authenticate:
    """Sets the request's user, or raises the error of its key or its session. Adds what remains of the rate limit to
    the answer.

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
        state = scope["state"]
        address = state["client_address"] = address_of(scope, controls.trusted_proxies)
        held = state[STATE] = Held()
        try:
            controls.in_flight.enter_address(held, address)
            admitted = await _admit(controls, scope, address)
            state[ADMITTED] = monotonic()
            caller = scope["user"] = admitted.principal
            _enter(controls.in_flight, held, caller)
            add_headers(scope, _headers(admitted))
            if scope["method"] in CHANGING:
                receive = _expecting_in_time(state[ADMITTED], caller, receive)
            token = context.actor.set(_actor(caller))
            try:
                draft = request_draft(scope, address, caller, refusals=controls.audit_refusals)
                if draft is None:
                    await self._app(scope, receive, send)
                else:
                    with drafting(draft):
                        await self._app(scope, receive, recording_refusal(scope, send))
            finally:
                context.actor.reset(token)
        finally:
            held.release()


async def _admit(controls: RequestControls, scope: HTTPScope, address: str) -> Admitted:
    authorization = _authorization(scope)
    if authorization is None:
        admitted = await _by_session(controls, scope, address)
        if admitted is not None:
            return admitted
    return await controls.admission.admit(authorization, address)


def _expecting_in_time(admitted: float, caller: Principal, receive: Receive) -> Receive:
    """A `receive` that checks again, when the body has ended, that the caller may still be here: one who holds the
    end of a body back may have lost that right in the meantime."""

    async def receive_expecting() -> HTTPReceiveMessage | ReceiveMessage:
        message = await receive()
        ends = message["type"] == "http.request" and not message.get("more_body")
        if ends:
            await standing.expect_in_all_teams_after(admitted, caller)
        return message

    return receive_expecting


def _enter(in_flight: InFlight, held: Held, caller: Principal) -> None:
    if caller.session_id is None:
        in_flight.enter_key(held, caller.key_id)
    else:
        in_flight.enter_person(held, caller.user_id)


def _actor(caller: Principal) -> context.Actor:
    if caller.session_id is None:
        return context.Actor(kind=context.ActorKind.KEY, user_id=caller.user_id, key_id=caller.key_id)
    return context.Actor(kind=context.ActorKind.SESSION, user_id=caller.user_id)


def _headers(admitted: Admitted) -> _Headers:
    left = admitted.allowance
    policy, rate = rate_limit_values(left.limit, left.remaining, left.resets_in)
    more = () if admitted.principal.session_id is None else PROTECTIVE_HEADERS
    return ((b"ratelimit-policy", policy.encode()), (b"ratelimit", rate.encode()), NO_STORE, *more)


async def _by_session(controls: RequestControls, scope: HTTPScope, address: str) -> Admitted | None:
    """Lets a request in by its session; None for a request without a session's cookie. Raises `CrossOriginRefused`,
    before anything is counted, and what `Admission.admit_session` does."""
    headers = Headers.from_scope(scope)
    if controls.site is None or "cookie" not in headers:
        return None
    try:
        origin = controls.site.origin(scope, headers)
        token = session_token(headers, origin.cookie)
        if token is None:
            return None
        check_own_page(scope["method"], headers, origin)
        return await controls.admission.admit_session(token, address)
    except AppError as refusal:
        refusal.headers |= {name.decode(): value.decode() for name, value in PROTECTIVE_HEADERS}
        raise


def _authorization(scope: HTTPScope) -> str | None:
    """The Authorization header; None without one. Raises `Unauthorized` for several different headers: a proxy before
    us may have checked another one than we would."""
    # Of the bytes: most requests are answered without their other headers being read.
    values = {value for name, value in scope["headers"] if name == b"authorization"}
    if len(values) > 1:
        raise Unauthorized("There are several Authorization headers. Send one.")
    return values.pop().decode("latin-1") if values else None
