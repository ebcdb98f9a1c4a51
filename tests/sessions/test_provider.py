"""Signing in through an OpenID Connect provider: a real one, on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx
import pytest
import pytest_asyncio

from app.accounts.sessions import oidc_routes
from app.accounts.sessions.oidc_provider import Provider, Unusable
from app.store.session import execute, fetch, fetch_scalar, fetch_value
from tests.sessions.provider import KNOWN, UNKNOWN, UNVERIFIED, running_provider
from tests.support.answers import body_of, data_of, error_of
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import meet
from tests.support.people import cookie_of
from tests.support.together import together
from tests.support.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")
"""The provider is older than the library that it is made of."""
PAGE = {"Origin": "http://test", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with running_provider() as issuer:
        yield issuer


@pytest_asyncio.fixture(scope="module")
async def shared(copies: Copies, provider: str) -> AsyncIterator[LoneApi]:
    async with (
        copies.lent() as dsn,
        lone_api(dsn, oidc_issuer=provider, oidc_client_id="headwater", oidc_client_secret="s3cret") as api,
    ):
        await (await api.caller()).get("/me")
        await fetch_scalar(int, "INSERT INTO users (email, name) VALUES ('ada@example.com', 'Ada') RETURNING id")
        yield api


async def begun(api: LoneApi, invitation: str | None = None) -> tuple[str, str]:
    """Where the browser is sent, and the cookie that it keeps."""
    if invitation is None:
        answer = await api.http.post("/api/v1/sign_in_redirects", headers=PAGE)
    else:
        body = {"token": invitation}
        answer = await api.http.post("/api/v1/sign_in_redirects/invitations", json=body, headers=PAGE)
    api.http.cookies.clear()
    name, value = cookie_of(answer)
    assert "HttpOnly; SameSite=Strict" in answer.headers["Set-Cookie"]
    return data_of(answer, 201)["url"], f"{name}={value}"


async def allowed(url: str, subject: str) -> dict[str, str]:
    """What the provider adds to our page's address when this person agrees."""
    async with httpx.AsyncClient(timeout=LIMIT_SECONDS) as browser:
        answer = await browser.post(url, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    location = answer.headers["Location"]
    assert location.startswith("http://test/console/sign-in?")
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def returned(api: LoneApi, brought: dict[str, str], cookie: str) -> httpx.Response:
    headers = {**PAGE, "Cookie": cookie} if cookie else PAGE
    answer = await api.http.post("/api/v1/sign_ins/provider", json=brought, headers=headers)
    api.http.cookies.clear()
    return answer


async def test_who_is_known_by_a_verified_email_comes_in(shared: LoneApi) -> None:
    url, cookie = await begun(shared)
    answer = await returned(shared, await allowed(url, KNOWN), cookie)
    assert data_of(answer, 201)["method"] == "oidc"
    ada = await fetch_scalar(int, "SELECT id FROM users WHERE email = 'ada@example.com'")
    assert await fetch_value(int, "SELECT user_id FROM oidc_subjects WHERE subject = $1", KNOWN) == ada
    audited = "SELECT outcome FROM audit_events WHERE action = 'session.open_by_provider' AND request_id = $1"
    assert await fetch_value(str, audited, answer.headers["X-Request-Id"]) == "succeeded"
    session = f"{cookie_of(answer)[0]}={cookie_of(answer)[1]}"
    shown = await shared.http.get("/api/v1/session", headers={"Cookie": session})
    assert data_of(shown)["user"]["id"] == ada
    # By the subject from now on: another one with the same address is another person.
    url, cookie = await begun(shared)
    error_of(await returned(shared, await allowed(url, "second"), cookie), 403, "sign_in_refused")
    url, cookie = await begun(shared)
    data_of(await returned(shared, await allowed(url, KNOWN), cookie), 201)


async def test_who_comes_twice_at_once_comes_in(shared: LoneApi) -> None:
    await execute("DELETE FROM oidc_subjects WHERE subject = $1", KNOWN)
    ways = [await begun(shared) for _ in range(2)]
    brought = [(await allowed(url, KNOWN), cookie) for url, cookie in ways]
    answers = await meet(shared.control_dsn, "users", [returned(shared, one, cookie) for one, cookie in brought])
    for answer in answers:
        assert data_of(answer, 201)["method"] == "oidc"


@pytest.mark.parametrize("subject", [UNKNOWN, UNVERIFIED])
async def test_who_is_not_known_does_not(shared: LoneApi, subject: str) -> None:
    before = await fetch_scalar(int, "SELECT count(*) FROM users")
    url, cookie = await begun(shared)
    answer = await returned(shared, await allowed(url, subject), cookie)
    error_of(answer, 403, "sign_in_refused")
    assert "Set-Cookie" not in answer.headers
    assert await fetch_scalar(int, "SELECT count(*) FROM users") == before


async def test_who_holds_an_invitation_for_their_address_gets_an_account(shared: LoneApi) -> None:
    owner = await shared.caller()

    async def invited(email: str | None) -> str:
        body = {"role": "viewer", **({} if email is None else {"email": email})}
        token: str = body_of(await owner.post(f"/teams/{owner.team_id}/invitations", body), 201)["token"]
        return token

    before = await fetch_scalar(int, "SELECT count(*) FROM users")
    withdrawn = await invited("grace@example.com")
    await execute("DELETE FROM invitations WHERE email IS NOT NULL")
    nowhere = await shared.http.post("/api/v1/sign_in_redirects/invitations", json={"token": withdrawn}, headers=PAGE)
    error_of(nowhere, 404, "not_found")
    for email, subject in (
        (None, "invited"),
        ("ada@example.com", "invited"),
        ("grace@example.com", UNKNOWN),
    ):
        url, cookie = await begun(shared, await invited(email))
        error_of(await returned(shared, await allowed(url, subject), cookie), 403, "sign_in_refused")
    assert await fetch_scalar(int, "SELECT count(*) FROM users") == before

    token = await invited("grace@example.com")
    expired = await invited("grace@example.com")
    url, cookie = await begun(shared, expired)
    brought = await allowed(url, "invited")
    await execute("UPDATE invitations SET expires_at = now() WHERE id = (SELECT max(id) FROM invitations)")
    error_of(await returned(shared, brought, cookie), 403, "sign_in_refused")
    preview = await shared.http.post("/api/v1/invitation_previews", json={"token": token}, headers=PAGE)
    seen = data_of(preview)
    assert (seen["team"], seen["role"], seen["email"], seen["status"]) == (
        "Test User",
        "viewer",
        "grace@example.com",
        "open",
    )
    url, cookie = await begun(shared, token)
    answer = await returned(shared, await allowed(url, "invited"), cookie)
    data_of(answer, 201)
    grace = await fetch_scalar(int, "SELECT id FROM users WHERE email = 'Grace@example.com'")
    [told] = await fetch(
        "SELECT action, team_id, changes FROM audit_events WHERE request_id = $1", answer.headers["X-Request-Id"]
    )
    assert (told["action"], told["team_id"]) == ("session.open_by_provider", owner.team_id)
    assert f'"user_created": [null, {grace}]' in told["changes"]
    session = {"Cookie": "=".join(cookie_of(answer)), **PAGE, "Idempotency-Key": "join"}
    person = data_of(await shared.http.get("/api/v1/session", headers=session))
    assert (person["user"]["name"], person["user"]["email"], person["teams"]) == ("Grace H.", "Grace@example.com", [])
    other = await invited("ada@example.com")
    refused = await shared.http.post("/api/v1/invitation_acceptances", json={"token": other}, headers=session)
    error_of(refused, 403, "invitation_for_another")
    joined = await shared.http.post(
        "/api/v1/invitation_acceptances", json={"token": token}, headers={**session, "Idempotency-Key": "once more"}
    )
    assert data_of(joined, 201)["role"] == "viewer"
    again = await shared.http.post("/api/v1/invitation_previews", json={"token": token}, headers=PAGE)
    assert data_of(again)["status"] == "accepted"
    nobody = await shared.http.post("/api/v1/invitation_previews", json={"token": "inv_x"}, headers=PAGE)
    error_of(nobody, 404, "not_found")
    elsewhere = {"Origin": "http://test:1", "Sec-Fetch-Site": "same-site"}
    away = await shared.http.post("/api/v1/invitation_previews", json={"token": token}, headers=elsewhere)
    error_of(away, 403, "cross_origin_refused")


async def test_an_invitation_makes_nobody_twice(shared: LoneApi) -> None:
    """The provider writes the address of somebody who is here already with capitals."""
    owner = await shared.caller()
    joan = await fetch_scalar(int, "INSERT INTO users (email, name) VALUES ('joan@example.com', 'Joan') RETURNING id")
    before = await fetch_scalar(int, "SELECT count(*) FROM users")
    body = {"role": "viewer", "email": "JOAN@example.com"}
    token = body_of(await owner.post(f"/teams/{owner.team_id}/invitations", body), 201)["token"]
    url, cookie = await begun(shared, token)
    answer = await returned(shared, await allowed(url, "capital"), cookie)
    data_of(answer, 201)
    session = {"Cookie": "=".join(cookie_of(answer)), **PAGE, "Idempotency-Key": "join"}
    assert data_of(await shared.http.get("/api/v1/session", headers=session))["user"]["id"] == joan
    assert await fetch_scalar(int, "SELECT count(*) FROM users") == before
    accepted = await shared.http.post("/api/v1/invitation_acceptances", json={"token": token}, headers=session)
    assert data_of(accepted, 201)["user_id"] == joan


async def test_what_the_browser_is_sent_with(shared: LoneApi) -> None:
    url, _ = await begun(shared)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert asked["response_type"] == "code"
    assert asked["client_id"] == "headwater"
    assert asked["redirect_uri"] == "http://test/console/sign-in"
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43
    assert len(asked["state"]) >= 43
    assert len(asked["nonce"]) >= 43
    assert "s3cret" not in url


@together("wrong", ["no-cookie", "another-cookie", "garbage-cookie", "state", "code", "issuer"])
async def test_what_does_not_belong_together(shared: LoneApi, wrong: str) -> None:
    """Nobody is signed in by a code that somebody else has got, as that somebody."""
    url, cookie = await begun(shared)
    _, other = await begun(shared)
    brought = await allowed(url, KNOWN)
    cookies = {"no-cookie": "", "another-cookie": other, "garbage-cookie": "headwater_sign_in=AAAA"}
    changes = {"state": {"state": "x"}, "code": {"code": "x"}, "issuer": {"iss": "https://evil.example"}}
    answer = await returned(shared, brought | changes.get(wrong, {}), cookies.get(wrong, cookie))
    error_of(answer, 403, "sign_in_refused")
    assert "Set-Cookie" not in answer.headers


async def test_a_code_is_for_the_browser_that_began(shared: LoneApi) -> None:
    """The provider gives nobody a token for a code without the verifier of its challenge."""
    url, cookie = await begun(shared)
    asked = parse_qs(urlsplit(url).query)
    other = urlunsplit(urlsplit(url)._replace(query=urlencode(asked | {"code_challenge": ["x" * 43]}, doseq=True)))
    error_of(await returned(shared, await allowed(other, KNOWN), cookie), 403, "sign_in_refused")
    url, cookie = await begun(shared)
    data_of(await returned(shared, await allowed(url, KNOWN), cookie), 201)


async def test_what_was_begun_too_long_ago(shared: LoneApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc_routes, "SIGN_IN_SECONDS", -1)
    url, cookie = await begun(shared)
    error_of(await returned(shared, await allowed(url, KNOWN), cookie), 403, "sign_in_refused")


async def test_a_code_counts_once(shared: LoneApi) -> None:
    url, cookie = await begun(shared)
    brought = await allowed(url, KNOWN)
    data_of(await returned(shared, brought, cookie), 201)
    error_of(await returned(shared, brought, cookie), 403, "sign_in_refused")


async def test_without_a_provider_there_is_none(copies: Copies) -> None:
    async with copies.lent() as dsn, lone_api(dsn) as api:
        assert data_of(await api.http.get("/api/v1/sign_in_methods"))["provider"] is None
        error_of(await api.http.post("/api/v1/sign_in_redirects", headers=PAGE), 404, "not_found")


async def test_the_methods(shared: LoneApi, provider: str) -> None:
    methods = data_of(await shared.http.get("/api/v1/sign_in_methods"))
    assert methods["provider"] == provider.partition("://")[2]


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that says this to every request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _http(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body), b"", body])


def _metadata(**changes: Any) -> bytes:
    known = {
        "issuer": "http://elsewhere",
        "authorization_endpoint": "http://elsewhere/a",
        "token_endpoint": "http://elsewhere/t",
        "jwks_uri": "http://elsewhere/k",
    }
    return json.dumps(known | changes).encode()


@pytest.mark.parametrize(
    "answer",
    [
        _http(b" " * 300_000),
        _http(b"x", b"Content-Encoding: gzip"),
        _http(b"", b"Location: http://elsewhere/", status=b"302 Found"),
        _http(b"[1]"),
        _http(b"{}"),
        _http(_metadata()),
        _http(b"", status=b"500 No"),
        b"nothing of HTTP\r\n\r\n",
    ],
    ids=["too-much", "compressed", "redirect", "no-object", "empty", "another-issuer", "error", "no-http"],
)
async def test_a_provider_that_answers_something_else(copies: Copies, answer: bytes) -> None:
    async with (
        copies.lent() as dsn,
        answering(answer) as issuer,
        lone_api(dsn, oidc_issuer=issuer, oidc_client_id="headwater") as api,
    ):
        error_of(await api.http.post("/api/v1/sign_in_redirects", headers=PAGE), 503, "service_unavailable")


def test_an_issuer_over_tls_leads_nowhere_without() -> None:
    over_tls = Provider("https://id.example.com", "headwater", None)
    with pytest.raises(Unusable, match="not over TLS"):
        over_tls.check_metadata("https://id.example.com", ["https://id.example.com/a", "http://id.example.com/t"])
