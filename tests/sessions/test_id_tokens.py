"""What is made of a provider's token (OpenID Connect Core 1.0, section 3.1.3.7): one that is not for this sign-in, or
not from this provider, signs nobody in."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from app.accounts.sessions.oidc_provider import Identity, Provider
from app.core.errors import ServiceUnavailable, SignInRefused
from tests.support.together import together

OURS, THEIRS = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
NONCE, CLIENT = "n-0S6_WzA2Mj", "headwater"
EMAIL = {"email": "ada@example.com", "email_verified": True}


@asynccontextmanager
async def provider_with(
    token_of: Callable[[str], str], *, moved: bytes = b"", padding: int = 0
) -> AsyncIterator[Provider]:
    """One that gives the token that is made of its issuer for every code. A path that begins with `moved` leads to
    another, which answers the same. Each answer has so many blanks at its end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        answers = {
            "/.well-known/openid-configuration": {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/a",
                "token_endpoint": f"{issuer}/t",
                "jwks_uri": f"{issuer}/k",
            },
            "/k": {"keys": [OURS.as_dict(private=False)]},
        }
        if moved and path.startswith(moved):
            writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /moved%s\r\n\r\n" % path)
            return writer.close()
        asked = path.removeprefix(b"/moved").decode()
        body = json.dumps(answers.get(asked) or {"id_token": token_of(issuer)}).encode() + b" " * padding
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        return writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield Provider(issuer, CLIENT, None)


def claims(issuer: str, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    known = {"iss": issuer, "sub": "1", "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": NONCE, **EMAIL}
    return {name: value for name, value in (known | changes).items() if value is not None}


def signed(key: ECKey = OURS, **changes: Any) -> Callable[[str], str]:
    return lambda issuer: jwt.encode({"alg": "ES256"}, claims(issuer, **changes), key)


def coded(part: bytes | dict[str, Any]) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(issuer: str) -> str:
    return f"{coded({'alg': 'none'})}.{coded(claims(issuer))}."


def by_what_everybody_has(issuer: str) -> str:
    """The public key as if it were a secret that both sides have."""
    text = f"{coded({'alg': 'HS256'})}.{coded(claims(issuer))}"
    return f"{text}.{coded(hmac.digest(OURS.as_pem(private=False), text.encode(), 'sha256'))}"


def changed(issuer: str) -> str:
    """Somebody else's name under a signature that is right."""
    head, _, signature = signed()(issuer).split(".")
    return f"{head}.{coded(claims(issuer, sub='2'))}.{signature}"


async def identified(token_of: Callable[[str], str]) -> Identity:
    async with provider_with(token_of) as provider:
        return await provider.identify("code", "http://test/console/sign-in", nonce=NONCE, verifier="v" * 43)


async def test_one_that_is_right() -> None:
    identity = await identified(signed())
    assert (identity.subject, identity.verified_email) == ("1", "ada@example.com")
    several = await identified(signed(aud=[CLIENT, "another"], azp=CLIENT))
    assert several.subject == "1"


@pytest.mark.parametrize("verified", [False, None, "true", 1])
async def test_an_address_that_nobody_vouches_for(verified: Any) -> None:
    assert (await identified(signed(email_verified=verified))).verified_email is None


WRONG = {
    "another-sign-in": signed(nonce="another"),
    "no-sign-in": signed(nonce=None),
    "another-issuer": signed(iss="https://evil.example"),
    "no-issuer": signed(iss=None),
    "another-client": signed(aud="another"),
    "no-client": signed(aud=None),
    "another-client-too": signed(aud=[CLIENT, "another"]),
    "for-another-party": signed(aud=[CLIENT, "another"], azp="another"),
    "nobody": signed(sub=None),
    "expired": signed(exp=int(time.time()) - 3600),
    "never-expires": signed(exp=None),
    "no-beginning": signed(iat=None),
    "another-key": signed(THEIRS),
    "the-public-key-as-a-secret": by_what_everybody_has,
    "unsigned": unsigned,
    "changed": changed,
    "no-token": lambda _: "x",
}


@together("token_of", WRONG.values(), ids=WRONG)
async def test_one_that_is_not_for_us(token_of: Callable[[str], str]) -> None:
    with pytest.raises(SignInRefused):
        await identified(token_of)


@pytest.mark.parametrize("moved", [b"/.well-known", b"/t", b"/k"])
async def test_a_provider_that_sends_us_elsewhere(moved: bytes) -> None:
    """What somebody signs in by goes to the provider alone."""
    async with provider_with(signed(), moved=moved) as provider:
        with pytest.raises(ServiceUnavailable):
            await provider.identify("code", "http://test/console/sign-in", nonce=NONCE, verifier="v" * 43)


async def test_a_provider_that_answers_too_much() -> None:
    async with provider_with(signed(), padding=300_000) as provider:
        with pytest.raises(ServiceUnavailable):
            await provider.identify("code", "http://test/console/sign-in", nonce=NONCE, verifier="v" * 43)
