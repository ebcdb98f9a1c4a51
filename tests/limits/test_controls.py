"""A key's addresses, expiry, inactivity and revocation. Interface specification, section 5, points 6 and 7."""

from datetime import timedelta

import httpx
import pytest

from app.auth.keys import KeyControls, revoke_key
from app.core.clock import utc_now
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import UNHURRIED, Caller
from tests.support.in_process import LoneApi


async def me_from(caller: Caller, address: str | None) -> httpx.Response:
    """`GET /me` through a proxy that was reached from that address."""
    return await caller.get("/me", headers={"X-Forwarded-For": address} if address else {})


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        (("203.0.113.7",), ["203.0.113.7", "::ffff:203.0.113.7"], ["203.0.113.8", "2001:db8::1"]),
        (("203.0.113.0/24",), ["203.0.113.0", "203.0.113.255"], ["203.0.112.255", "203.0.114.0"]),
        (("203.0.113.9/24",), ["203.0.113.1"], ["203.0.114.1"]),
        (("0.0.0.0/0",), ["8.8.8.8", "::ffff:8.8.8.8"], ["2001:db8::1"]),
        (("::/0",), ["2001:db8::1"], ["203.0.113.7"]),
        (("2001:db8::/32",), ["2001:db8:ffff::1", "[2001:db8::1]:443"], ["2001:db9::1", "203.0.113.7"]),
        (("2001:db8::7",), ["2001:0db8:0:0::7", "2001:DB8::7"], ["2001:db8::8"]),
        (("198.51.100.0/25", "2001:db8::/64"), ["198.51.100.127", "2001:db8::ffff"], ["198.51.100.128"]),
        (("127.0.0.0/8",), [None], ["203.0.113.7"]),
    ],
)
async def test_addresses(
    shared: LoneApi, allowed: tuple[str, ...], inside: list[str | None], outside: list[str]
) -> None:
    caller = await shared.caller(controls=KeyControls(allowed_ips=allowed))
    for address in inside:
        body_of(await me_from(caller, address))
    for address in outside:
        error_of(await me_from(caller, address), 403, "ip_not_allowed")


async def test_a_refused_address_uses_nothing_up(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=1, allowed_ips=("203.0.113.7",)))
    for _ in range(3):
        error_of(await me_from(caller, "203.0.113.8"), 403, "ip_not_allowed")
    answer = body_of(await me_from(caller, "203.0.113.7"))
    assert answer["data"]["api_key"]["last_used_at"] is None


async def test_a_header_that_several_proxies_wrote_apart(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(allowed_ips=("203.0.113.7",)))
    headers = [(b"X-Forwarded-For", b"198.51.100.1"), (b"X-Forwarded-For", b"203.0.113.7"), _bearer(caller)]
    body_of(await shared.http.get("/api/v1/me", headers=headers))
    headers = [(b"X-Forwarded-For", b"203.0.113.7"), (b"X-Forwarded-For", b"198.51.100.1"), _bearer(caller)]
    error_of(await shared.http.get("/api/v1/me", headers=headers), 403, "ip_not_allowed")


async def test_without_a_trusted_proxy_the_header_is_nothing(lone: LoneApi) -> None:
    caller = await lone.caller(controls=KeyControls(allowed_ips=("203.0.113.7",)))
    error_of(await me_from(caller, "203.0.113.7"), 403, "ip_not_allowed")
    caller = await lone.caller(controls=KeyControls(allowed_ips=("127.0.0.1",)))
    body_of(await me_from(caller, "203.0.113.7"))


async def test_the_moment_of_expiry(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(expires_at=utc_now() + timedelta(hours=1)))
    body_of(await caller.get("/me"))
    await fetch("UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1", caller.key_id)
    error_of(await caller.get("/me"), 403, "api_key_expired")


async def test_inactivity(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(inactive_ttl_days=30))
    body_of(await caller.get("/me"))
    await _last_used(caller, "29 days 23 hours 59 minutes")
    body_of(await caller.get("/me"))
    await _last_used(caller, "30 days")
    error_of(await caller.get("/me"), 403, "api_key_expired")
    # To be refused is no use: else asking often enough would revive the key.
    error_of(await caller.get("/me"), 403, "api_key_expired")


async def test_the_inactivity_of_a_key_never_used_counts_from_its_making(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(inactive_ttl_days=1))
    await fetch("UPDATE api_keys SET created_at = now() - interval '1 day' WHERE id = $1", caller.key_id)
    error_of(await caller.get("/me"), 403, "api_key_expired")


async def test_what_is_said_first_of_a_key_with_several_faults(shared: LoneApi) -> None:
    """Revocation, address, expiry, then rate."""
    controls = KeyControls(requests_per_minute=1, allowed_ips=("203.0.113.7",))
    caller = await shared.caller(controls=controls)
    body_of(await me_from(caller, "203.0.113.7"))
    error_of(await me_from(caller, "203.0.113.7"), 429, "rate_limit_exceeded")
    error_of(await me_from(caller, "203.0.113.8"), 403, "ip_not_allowed")
    await fetch("UPDATE api_keys SET expires_at = now() WHERE id = $1", caller.key_id)
    error_of(await me_from(caller, "203.0.113.7"), 403, "api_key_expired")
    error_of(await me_from(caller, "203.0.113.8"), 403, "ip_not_allowed")
    await revoke_key(caller.key_id)
    error_of(await me_from(caller, "203.0.113.8"), 403, "invalid_api_key")


@pytest.mark.parametrize("controls", [KeyControls(requests_per_minute=1), KeyControls(monthly_quota=1)])
async def test_limits_come_before_scope_body_and_resource(shared: LoneApi, controls: KeyControls) -> None:
    caller = await shared.caller(scopes=("queries:write",), controls=controls)
    body_of(await caller.get("/me"))
    for method, path in (("POST", "/databases"), ("GET", "/databases/x"), ("DELETE", "/databases/x")):
        assert (await caller.request(method, path, content=b"{")).status_code == 429
    error_of(await caller.get("/nothing"), 404, "not_found")
    error_of(await caller.request("PUT", "/me"), 405, "method_not_allowed")


async def test_one_users_keys_are_apart(shared: LoneApi) -> None:
    first, other = await shared.caller(controls=KeyControls(requests_per_minute=1)), await shared.caller()
    body_of(await first.get("/me"))
    error_of(await first.get("/me"), 429, "rate_limit_exceeded")
    await fetch("UPDATE api_keys SET user_id = $1 WHERE id = $2", first.user_id, other.key_id)
    assert (
        data_of(await other.get("/me"))["api_key"]["controls"]["requests_per_minute"] == UNHURRIED.requests_per_minute
    )


def _bearer(caller: Caller) -> tuple[bytes, bytes]:
    return b"Authorization", f"Bearer {caller.api_key}".encode()


async def _last_used(caller: Caller, ago: str) -> None:
    await fetch(f"UPDATE api_key_usage SET last_used_at = now() - interval '{ago}' WHERE key_id = $1", caller.key_id)
