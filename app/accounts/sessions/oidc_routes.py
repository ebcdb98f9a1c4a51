"""Signing in through the installation's OpenID Connect provider. Core 1.0, section 3.1, with PKCE (RFC 7636).

The provider sends the browser back to a page of ours, which posts what it brought: so nothing changes by a GET, and the
cookie that binds it to the browser which began needs to go with no request from elsewhere.
"""

import base64
import binascii
import secrets
from time import time

import msgspec
from litestar import MediaType, Response, get, params, post

from app.accounts.sessions.calls import SIGNED_IN, Injected, Visit, signed_in
from app.accounts.sessions.examples import EXAMPLE_INVITATION_TOKEN, EXAMPLE_METHODS, EXAMPLE_REDIRECT, EXAMPLE_SESSION
from app.accounts.sessions.links import PAGE
from app.accounts.sessions.oidc_provider import Provider
from app.accounts.sessions.oidc_schemas import ReturnedCode, SignInMethods, SignInRedirect
from app.accounts.sessions.oidc_subjects import person_of
from app.accounts.sessions.schemas import HeldInvitation, SessionView
from app.audit.events import audited
from app.auth.invitations import find_by_token
from app.auth.scopes import Reach
from app.auth.sessions import SignInMethod
from app.core.errors import CrossOriginRefused, NotFound, SignInRefused, require_found
from app.core.secrets import InvalidSecret, SecretBox, SecretLocation
from app.web.envelope import Item, encode
from app.web.operation import COMPUTES, Audience, operation
from app.web.site import session_cookie, session_token

SIGN_IN_SECONDS = 600
_PLACE = SecretLocation("sign_ins", "cookie", "oidc")
_BEGIN_AGAIN = "This sign-in was not begun with this browser, or too long ago. Begin again."


class _Begun(msgspec.Struct, frozen=True):
    """What the browser keeps, sealed, until it comes back."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    until: float
    invitation: str | None = None
    """The token of one, where they came with it."""


@get(
    "/sign_in_methods",
    **operation(
        "getSignInMethods",
        "By what people can sign in here",
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={200: Item[SignInMethods]},
        examples={200: Item(data=EXAMPLE_METHODS)},
        errors=(CrossOriginRefused,),
    ),
)
async def get_sign_in_methods(request: Visit, services: Injected) -> Item[SignInMethods]:
    origin = services.site.origin(request.scope, request.headers)
    provider = services.provider
    return Item(data=SignInMethods(passkeys=origin.is_name, provider=None if provider is None else provider.host))


@post(
    "/sign_in_redirects",
    **operation(
        "createSignInRedirect",
        "Begin to sign in through the installation's provider: where the browser is to go",
        action=COMPUTES,
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SignInRedirect]},
        examples={201: Item(data=EXAMPLE_REDIRECT)},
        errors=(CrossOriginRefused, NotFound),
    ),
)
async def create_sign_in_redirect(request: Visit, services: Injected) -> Response[bytes]:
    return await _begin(request, services, None)


@post(
    "/sign_in_redirects/invitations",
    **operation(
        "createInvitedSignInRedirect",
        "The same with an invitation: who has no account gets one where the provider has verified its address",
        action=COMPUTES,
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SignInRedirect]},
        examples={201: Item(data=EXAMPLE_REDIRECT)},
        body=HeldInvitation,
        example={"token": EXAMPLE_INVITATION_TOKEN},
        errors=(CrossOriginRefused, NotFound),
    ),
)
async def create_invited_sign_in_redirect(
    request: Visit, services: Injected, data: params.JSONBody[HeldInvitation]
) -> Response[bytes]:
    require_found(await find_by_token(data.token), "invitation")
    return await _begin(request, services, data.token)


async def _begin(request: Visit, services: Injected, invitation: str | None) -> Response[bytes]:
    provider, origin = _provider(services), services.site.origin(request.scope, request.headers)
    begun = _Begun(
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        redirect_uri=f"{origin}{PAGE}",
        until=time() + SIGN_IN_SECONDS,
        invitation=invitation,
    )
    url = await provider.authorization_url(
        begun.redirect_uri, state=begun.state, nonce=begun.nonce, verifier=begun.verifier
    )
    cookie = session_cookie(origin, _seal(services.box, begun), SIGN_IN_SECONDS, name=origin.provider_cookie)
    body = Item(data=SignInRedirect(url=url))
    return Response(encode(body), status_code=201, media_type=MediaType.JSON, headers={"Set-Cookie": cookie})


@post(
    "/sign_ins/provider",
    **operation(
        "useProvider",
        "Sign in by what the provider has sent back: the answer sets the session's cookie",
        action="session.open_by_provider",
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SessionView]},
        examples={201: Item(message=SIGNED_IN, data=EXAMPLE_SESSION)},
        body=ReturnedCode,
        example={"code": "SplxlOBeZQQYbYS6WxSbIA", "state": "af0ifjsldkj"},
        errors=(SignInRefused, CrossOriginRefused, NotFound),
    ),
)
async def use_provider(request: Visit, services: Injected, data: params.JSONBody[ReturnedCode]) -> Response[bytes]:
    provider, origin = _provider(services), services.site.origin(request.scope, request.headers)
    begun = _open(services.box, session_token(request.headers, origin.provider_cookie))
    if begun is None or not secrets.compare_digest(begun.state.encode(), data.state.encode()):
        raise SignInRefused(_BEGIN_AGAIN)
    if data.iss is not None and data.iss.rstrip("/") != provider.issuer:
        raise SignInRefused("This comes from another provider.")
    identity = await provider.identify(data.code, begun.redirect_uri, nonce=begun.nonce, verifier=begun.verifier)
    # What the browser kept opens nothing any more: the provider takes a code once.
    async with audited():
        user_id = await person_of(identity, begun.invitation)
        return await signed_in(request, services, user_id, SignInMethod.OIDC)


def _provider(services: Injected) -> Provider:
    """Raises `NotFound`."""
    if services.provider is None:
        raise NotFound("provider to sign in through")
    return services.provider


def _seal(box: SecretBox, begun: _Begun) -> str:
    return base64.urlsafe_b64encode(box.seal(msgspec.json.encode(begun).decode(), _PLACE)).decode().rstrip("=")


def _open(box: SecretBox, cookie: str | None) -> _Begun | None:
    """None for what we didn't seal, or too long ago."""
    try:
        sealed = base64.urlsafe_b64decode((cookie or "") + "==")
        begun = msgspec.json.decode(box.open(sealed, _PLACE), type=_Begun)
    except (binascii.Error, ValueError, InvalidSecret, msgspec.DecodeError):
        return None
    return begun if begun.until > time() else None
