"""What is sent to sign in, by who has neither a key nor a session: bounded, and refused without an error of ours."""

import json
from typing import Any

import pytest

from app.store.session import fetch_scalar
from tests.sessions.test_attempts import PAGE, WAYS
from tests.support.answers import data_of, error_of
from tests.support.in_process import LoneApi
from tests.support.people import Person, follow, link_for
from tests.support.together import together

MIB = 1024 * 1024
LONG = "A" * 100_001
RESPONSE = {"clientDataJSON": "e30", "authenticatorData": "AA", "signature": "AA", "attestationObject": "AA"}
CREDENTIAL = {"id": "AA", "rawId": "AA", "type": "public-key", "response": RESPONSE}


def too_long() -> list[tuple[str, Any]]:
    """Every field of every body, one at a time beyond its bound."""
    bodies: list[tuple[str, Any]] = [
        ("/sign_ins/links", {"token": LONG}),
        ("/invitation_previews", {"token": LONG}),
        ("/sign_in_redirects/invitations", {"token": LONG}),
        *(("/sign_ins/provider", {"code": "x", "state": "x", field: LONG}) for field in ("code", "state", "iss")),
    ]
    for path in ("/sign_ins/passkeys", "/passkeys"):
        named = {"name": "x"} if path == "/passkeys" else {}
        bodies += [(path, named | {"credential": CREDENTIAL | {field: LONG}}) for field in ("id", "rawId", "type")]
        fields = ["clientDataJSON", "attestationObject", "transports"]
        if path == "/sign_ins/passkeys":
            fields = ["clientDataJSON", "authenticatorData", "signature", "userHandle"]
        for field in fields:
            long = [LONG] if field == "transports" else LONG
            bodies.append((path, named | {"credential": CREDENTIAL | {"response": RESPONSE | {field: long}}}))
    bodies.append(("/passkeys", {"name": LONG, "credential": CREDENTIAL}))
    return bodies


async def test_a_field_beyond_its_bound(person: Person) -> None:
    for path, body in too_long():
        answer = await person.post(path, body)
        assert answer.status_code == 422, f"{path} {json.dumps(body)[:200]}: {answer.text}"
        assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", [*WAYS, "/passkeys", "/passkey_challenges"])
async def test_a_body_beyond_its_bound(person: Person, path: str) -> None:
    """Also where none is read."""
    answer = await person.request("POST", path, key="k", content=b" " * MIB + b"{}")
    assert answer.status_code in (413, 201, 404), answer.text
    if path not in ("/sign_in_challenges", "/sign_in_redirects", "/passkey_challenges"):
        error_of(answer, 413, "payload_too_large")


@together("token", [r"\ud800", r"\u0000", "\u202e", "'; DROP TABLE sessions; --", "%00", ""])
async def test_a_token_that_is_no_text(shared: LoneApi, token: str) -> None:
    for path in ("/sign_ins/links", "/invitation_previews", "/sign_in_redirects/invitations"):
        content = f'{{"token": "{token}"}}'.encode()
        answer = await shared.http.post(f"/api/v1{path}", content=content, headers=PAGE)
        assert answer.status_code in (400, 403, 404, 422), answer.text


@together("cookie", ["x" * 8000, "\xff\xfe", "; " * 2000, "=", "a" * 43 + "\t"])
async def test_a_cookie_that_is_no_token(shared: LoneApi, cookie: str) -> None:
    """Nobody is signed in by it, and it is taken away."""
    headers = {b"Cookie": f"headwater_session={cookie}".encode("latin-1")}
    answer = await shared.http.get("/api/v1/session", headers=headers)
    assert data_of(answer) is None
    answer = await shared.http.get("/api/v1/sessions", headers=headers)
    assert answer.status_code == 401, answer.text


async def test_a_browser_that_calls_itself_something(shared: LoneApi) -> None:
    """What a person sees of it later is bounded."""
    caller = await shared.caller()
    answer = await follow(
        shared.http, await link_for(shared.control_dsn, caller.user_id), headers={"User-Agent": "<b>" * 1000}
    )
    assert len(data_of(answer, 201)["user_agent"]) == 200
    assert await fetch_scalar(int, "SELECT max(length(user_agent)) FROM sessions") <= 200
