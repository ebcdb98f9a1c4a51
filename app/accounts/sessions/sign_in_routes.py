"""Signing in, and who is signed in. These routes know nobody yet: see `app.http.visitors`."""

from litestar import MediaType, Response, get, params, post

from app.accounts.sessions import passkeys
from app.accounts.sessions.calls import SIGNED_IN, Injected, Visit, signed_in
from app.accounts.sessions.examples import (
    EXAMPLE_ASSERTION,
    EXAMPLE_CURRENT,
    EXAMPLE_LINK_TOKEN,
    EXAMPLE_OPTIONS,
    EXAMPLE_SESSION,
)
from app.accounts.sessions.links import use_link
from app.accounts.sessions.passkey_schemas import PasskeyOptions, UsePasskey
from app.accounts.sessions.schemas import CurrentSession, CurrentSessionView, FollowedLink, SessionView, current_view
from app.audit.events import audited
from app.auth import sessions
from app.auth.scopes import Reach
from app.auth.sessions import SignInMethod
from app.core.errors import CrossOriginRefused, SessionEnded, SignInRefused
from app.web.envelope import Item, encode
from app.web.operation import COMPUTES, Audience, operation
from app.web.site import session_cookie, session_token


@get(
    "/session",
    **operation(
        "getSession",
        "Who is signed in with this browser, with which roles; null for nobody",
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={200: CurrentSession},
        examples={200: CurrentSession(data=EXAMPLE_CURRENT)},
        errors=(CrossOriginRefused,),
    ),
)
async def get_session(request: Visit, services: Injected) -> Response[bytes]:
    origin = services.site.origin(request.scope, request.headers)
    token = session_token(request.headers, origin.cookie)
    current = None if token is None else await _current(request, services, token)
    # A browser forgets the cookie of what has ended.
    headers = {"Set-Cookie": session_cookie(origin, "", 0)} if token is not None and current is None else {}
    return Response(encode(CurrentSession(data=current)), media_type=MediaType.JSON, headers=headers)


async def _current(request: Visit, services: Injected, token: str) -> CurrentSessionView | None:
    """It counts as a request of the person's."""
    address: str = request.scope["state"]["client_address"]
    try:
        admitted = await services.admission.admit_session(token, address)
    except SessionEnded:
        return None
    record = await sessions.find_session(admitted.principal.session_id or 0)
    return None if record is None else current_view(record, admitted.principal)


@post(
    "/sign_ins/links",
    **operation(
        "followSignInLink",
        "Sign in by a link, once: the answer sets the session's cookie",
        action="session.open_by_link",
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SessionView]},
        examples={201: Item(message=SIGNED_IN, data=EXAMPLE_SESSION)},
        body=FollowedLink,
        example={"token": EXAMPLE_LINK_TOKEN},
        errors=(SignInRefused, CrossOriginRefused),
    ),
)
async def follow_link(request: Visit, services: Injected, data: params.JSONBody[FollowedLink]) -> Response[bytes]:
    async with audited():
        user_id = await use_link(data.token)
        if user_id is None:
            raise SignInRefused("This link has been used, has expired, or never was. Ask for another one.")
        return await signed_in(request, services, user_id, SignInMethod.LINK)


@post(
    "/sign_in_challenges",
    **operation(
        "createSignInChallenge",
        "Begin to sign in with a passkey: what the browser asks the authenticator, once",
        action=COMPUTES,
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[PasskeyOptions]},
        examples={201: Item(data=PasskeyOptions(options=EXAMPLE_OPTIONS))},
        errors=(CrossOriginRefused,),
    ),
)
async def create_sign_in_challenge(request: Visit, services: Injected) -> Item[PasskeyOptions]:
    options = await passkeys.ask_for_any(services.site.origin(request.scope, request.headers))
    return Item(data=PasskeyOptions(options=options))


@post(
    "/sign_ins/passkeys",
    **operation(
        "usePasskey",
        "Sign in with a passkey, by the authenticator's answer to a challenge: the answer sets the session's cookie",
        action="session.open_by_passkey",
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SessionView]},
        examples={201: Item(message=SIGNED_IN, data=EXAMPLE_SESSION)},
        body=UsePasskey,
        example={"credential": EXAMPLE_ASSERTION},
        errors=(SignInRefused, CrossOriginRefused),
    ),
)
async def use_passkey(request: Visit, services: Injected, data: params.JSONBody[UsePasskey]) -> Response[bytes]:
    origin = services.site.origin(request.scope, request.headers)
    # Also the challenge of an answer that is refused is used up: in a transaction of its own.
    challenge = await passkeys.challenge_of(data.credential.response.clientDataJSON)
    async with audited():
        passkey = await passkeys.recognise(origin, challenge, data.credential)
        return await signed_in(request, services, passkey.user_id, SignInMethod.PASSKEY)
