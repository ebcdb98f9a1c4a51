"""Who gets in: 401 for the header, 403 for the key and its scopes. Interface specification, section 5."""

from datetime import timedelta

import pytest

from app.auth.keys import KeyControls, revoke_key
from app.core.clock import utc_now
from app.store.session import fetch
from tests.support.answers import body_of, error_of
from tests.support.in_process import LoneApi
from tests.support.together import together

NOWHERE = "/databases/8a3f7c1e-52d4-4b0e-9a67-1c2d3e4f5a6b"
ENDPOINTS = [
    ("GET", "/me"),
    ("GET", "/database_types"),
    ("POST", "/databases"),
    ("GET", "/databases"),
    ("GET", NOWHERE),
    ("PATCH", NOWHERE),
    ("PATCH", f"{NOWHERE}/quotas"),
    ("DELETE", NOWHERE),
]
READS = [endpoint for endpoint in ENDPOINTS if endpoint[0] == "GET" and endpoint[1] != "/me"]
WRITES = [endpoint for endpoint in ENDPOINTS if endpoint[0] != "GET"]


@together(("method", "path"), ENDPOINTS)
async def test_no_header(shared: LoneApi, method: str, path: str) -> None:
    answer = await shared.http.request(method, f"/api/v1{path}")
    error_of(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@together("header", ["", " ", "Bearer", "Bearer ", "Basic %s", "%s", "Bearer %s %s", "Token %s"])
async def test_a_malformed_header(shared: LoneApi, header: str) -> None:
    caller = await shared.caller()
    value = header.replace("%s", caller.api_key)
    error_of(await shared.http.get("/api/v1/me", headers={"Authorization": value}), 401, "unauthorized")


async def test_two_headers_that_differ(shared: LoneApi) -> None:
    one, other = await shared.caller(), await shared.caller()
    headers = [("Authorization", f"Bearer {caller.api_key}") for caller in (one, other)]
    error_of(await shared.http.get("/api/v1/me", headers=headers), 401, "unauthorized")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_has_no_case(shared: LoneApi, scheme: str) -> None:
    caller = await shared.caller()
    body_of(await shared.http.get("/api/v1/me", headers={"Authorization": f"{scheme} {caller.api_key}"}))


@pytest.mark.parametrize("key", ["pk_live_unknown", "pk_live_", "sk_live_x", "é".encode("latin-1")])
async def test_an_unknown_key(shared: LoneApi, key: str | bytes) -> None:
    value = b"Bearer " + (key.encode() if isinstance(key, str) else key)
    error_of(await shared.http.get("/api/v1/me", headers={b"Authorization": value}), 403, "invalid_api_key")


@together(("method", "path"), ENDPOINTS)
async def test_a_revoked_key(shared: LoneApi, method: str, path: str) -> None:
    caller = await shared.caller()
    body_of(await caller.get("/me"))
    await revoke_key(caller.key_id)
    error_of(await caller.request(method, path, key="k"), 403, "invalid_api_key")


async def test_an_expired_key(shared: LoneApi) -> None:
    past, future = (KeyControls(expires_at=utc_now() + timedelta(seconds=offset)) for offset in (-1, 60))
    error_of(await (await shared.caller(controls=past)).get("/me"), 403, "api_key_expired")
    body_of(await (await shared.caller(controls=future)).get("/me"))


@pytest.mark.parametrize(("method", "path"), READS)
async def test_reading_needs_its_scope(shared: LoneApi, method: str, path: str) -> None:
    refused = await shared.caller(scopes=("databases:write", "webhooks:read", "queries:write"))
    error = error_of(await refused.request(method, path), 403, "insufficient_scope")
    assert error["details"] == {"required": "databases:read"}
    for scope in ("databases:read", "databases:*"):
        admitted = await shared.caller(scopes=(scope,))
        assert (await admitted.request(method, path)).status_code in (200, 404)


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_writing_needs_its_scope(shared: LoneApi, method: str, path: str) -> None:
    refused = await shared.caller(scopes=("databases:read", "blueprints:write"))
    error = error_of(await refused.request(method, path, key="k"), 403, "insufficient_scope")
    assert error["details"] == {"required": "databases:write"}
    body = None if method == "DELETE" else {"name": "a"} if not path.endswith("quotas") else {}
    for scope in ("databases:write", "databases:*"):
        admitted = await shared.caller(scopes=(scope,))
        assert (await admitted.request(method, path, key="k", json=body)).status_code in (202, 404)


async def test_me_needs_no_scope_of_its_own(shared: LoneApi) -> None:
    body_of(await (await shared.caller(scopes=("webhooks:read",))).get("/me"))


async def test_only_a_digest_of_a_key_is_stored(shared: LoneApi) -> None:
    caller = await shared.caller()
    rows = await fetch("SELECT k::text AS row FROM api_keys k WHERE id = $1", caller.key_id)
    assert caller.api_key not in rows[0]["row"]
    assert caller.api_key.encode().hex() not in rows[0]["row"]


async def test_health_needs_no_key(shared: LoneApi) -> None:
    for path in ("/health/live", "/health/ready"):
        assert (await shared.http.get(path)).status_code == 200
        asked = await shared.http.head(path)
        assert (asked.status_code, asked.content) == (200, b"")


async def test_the_right_key_of_another_case_is_unknown(shared: LoneApi) -> None:
    caller = await shared.caller()
    value = f"Bearer {caller.api_key.swapcase().replace('PK_LIVE_', 'pk_live_')}"
    error_of(await shared.http.get("/api/v1/me", headers={"Authorization": value}), 403, "invalid_api_key")


async def test_a_key_of_a_user_who_is_gone(shared: LoneApi) -> None:
    caller = await shared.caller()
    await fetch("DELETE FROM users WHERE id = $1", caller.user_id)
    error_of(await caller.get("/me"), 403, "invalid_api_key")
