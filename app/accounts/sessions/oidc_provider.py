"""The OpenID Connect provider of the installation: what it says of itself, and its tokens.

Discovery 1.0, section 4; Core 1.0, sections 3.1.2 and 3.1.3. The operator names the provider, so it may be on an
internal network; what it answers is bounded in bytes and in time all the same, and no redirect is followed.
"""

import asyncio
import base64
import hashlib
import ssl
from collections.abc import Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import msgspec
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from app.core.errors import ServiceUnavailable, SignInRefused

_MOST_BYTES = 256 * 1024
_SECONDS = 10.0
_FRESH_SECONDS = 3600.0
_SOONEST_SECONDS = 30.0
"""The least time between two looks at the provider's keys, for a token that none of them has signed."""
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
"""Never `none`, and none whose key we would share with the provider."""
_LEEWAY_SECONDS = 60
_SCOPE = "openid email profile"

log = structlog.get_logger(__name__)


class _Metadata(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who has signed in at the provider."""

    issuer: str
    subject: str
    verified_email: str | None
    """None where the provider doesn't vouch for it."""
    name: str | None


class Unusable(Exception):
    """The provider doesn't answer, or not as it should."""


class Provider:
    """One provider and our registration there."""

    def __init__(self, issuer: str, client_id: str, client_secret: str | None) -> None:
        self._issuer = issuer.rstrip("/")
        self._client_id = client_id
        self._client_secret = client_secret
        self._context = ssl.create_default_context()
        self._metadata: tuple[float, _Metadata] | None = None
        self._keys: tuple[float, KeySet] | None = None

    @property
    def issuer(self) -> str:
        """The provider's issuer, without a slash at its end."""
        return self._issuer

    @property
    def host(self) -> str:
        """What people know the provider by."""
        return urlsplit(self._issuer).netloc

    async def authorization_url(self, redirect_uri: str, *, state: str, nonce: str, verifier: str) -> str:
        """Where a browser is sent. Raises `ServiceUnavailable`."""
        metadata = await self._discovered()
        digest = hashlib.sha256(verifier.encode()).digest()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._client_id,
                "redirect_uri": redirect_uri,
                "scope": _SCOPE,
                "state": state,
                "nonce": nonce,
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )
        separator = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        return f"{metadata.authorization_endpoint}{separator}{query}"

    async def identify(self, code: str, redirect_uri: str, *, nonce: str, verifier: str) -> Identity:
        """The identity of the person who has got this code. Raises `SignInRefused` or `ServiceUnavailable`."""
        metadata = await self._discovered()
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        auth = None
        if self._client_secret is None:
            given["client_id"] = self._client_id
        else:
            auth = httpx.BasicAuth(self._client_id, self._client_secret)
        try:
            status, body = await self._request("POST", metadata.token_endpoint, data=given, auth=auth)
            if 400 <= status < 500:
                log.info("sign_in_code_refused", status=status)
                raise SignInRefused("The provider has refused this sign-in. Try again.")
            tokens = _decoded(status, body, _Tokens)
            claims = await self._claims(tokens.id_token, metadata, nonce)
        except Unusable as fault:
            raise _unavailable(fault) from None
        email, name = claims.get("email"), claims.get("name")
        return Identity(
            issuer=self._issuer,
            subject=str(claims["sub"]),
            verified_email=email if isinstance(email, str) and claims.get("email_verified") is True else None,
            name=name if isinstance(name, str) else None,
        )

    async def _claims(self, token: str, metadata: _Metadata, nonce: str) -> dict[str, Any]:
        """The token's claims, if they are valid: Core 1.0, section 3.1.3.7. Raises `SignInRefused` or `Unusable`."""
        rules = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": metadata.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": self._client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims = (await self._verified(token, metadata)).claims
            rules.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError) as fault:
            log.info("sign_in_token_refused", reason=type(fault).__name__)
            raise SignInRefused("The provider's answer is not for this sign-in. Try again.") from None
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != self._client_id:
            raise SignInRefused("The provider's answer is for somebody else.")
        return claims

    async def _verified(self, token: str, metadata: _Metadata) -> jwt.Token:
        """The verified token. The provider may have changed its keys since we looked."""
        try:
            return jwt.decode(token, await self._key_set(metadata, _FRESH_SECONDS), algorithms=_ALGORITHMS)
        except (JoseError, ValueError):
            return jwt.decode(token, await self._key_set(metadata, _SOONEST_SECONDS), algorithms=_ALGORITHMS)

    async def _key_set(self, metadata: _Metadata, fresh: float) -> KeySet:
        if self._keys is None or monotonic() - self._keys[0] > fresh:
            status, body = await self._request("GET", metadata.jwks_uri)
            try:
                keys = KeySet.import_key_set(_decoded(status, body, dict))
            except (JoseError, ValueError, TypeError, KeyError) as fault:
                raise Unusable(f"its keys can't be read: {type(fault).__name__}") from None
            self._keys = (monotonic(), keys)
        return self._keys[1]

    async def _discovered(self) -> _Metadata:
        """Raises `ServiceUnavailable`."""
        if self._metadata is None or monotonic() - self._metadata[0] > _FRESH_SECONDS:
            try:
                status, body = await self._request("GET", f"{self._issuer}/.well-known/openid-configuration")
                found = _decoded(status, body, _Metadata)
                self.check_metadata(found.issuer, [found.authorization_endpoint, found.token_endpoint, found.jwks_uri])
            except Unusable as fault:
                raise _unavailable(fault) from None
            self._metadata = (monotonic(), found)
        return self._metadata[1]

    def check_metadata(self, issuer: str, urls: Sequence[str]) -> None:
        """Raises `Unusable` for what speaks for another issuer, or leads from TLS to none."""
        if issuer.rstrip("/") != self._issuer:
            raise Unusable("it says that it is another issuer")
        scheme = urlsplit(self._issuer).scheme
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("https", scheme) or not parts.netloc:
                raise Unusable("one of its addresses is not over TLS")

    async def _request(self, method: str, url: str, **options: Any) -> tuple[int, bytes]:
        """Raises `Unusable`."""
        # What is compressed has no bound.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx.AsyncClient(verify=self._context, trust_env=False, follow_redirects=False) as client,
                client.stream(method, url, headers=headers, timeout=_SECONDS, **options) as answer,
            ):
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Unusable("it answers compressed")
                body = b""
                async for part in answer.aiter_raw():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise Unusable("it answers too much")
                return answer.status_code, body
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as fault:
            raise Unusable(str(fault) or type(fault).__name__) from None


def _decoded(status: int, body: bytes, kind: type[Any]) -> Any:
    """Raises `Unusable`."""
    if status != 200:
        raise Unusable(f"it answers {status}")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise Unusable(f"it answers something else: {type(fault).__name__}") from None


def _unavailable(fault: Unusable) -> ServiceUnavailable:
    log.warning("sign_in_provider_unusable", reason=str(fault))
    return ServiceUnavailable("The provider by which people sign in can't be used at the moment.")
