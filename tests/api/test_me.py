"""`GET /me`. Interface specification, sections 2.6 and 4.2."""

from datetime import datetime

from app.auth.keys import KeyControls
from app.store.session import fetch
from tests.support.answers import body_of, data_of
from tests.support.in_process import LoneApi


async def test_who_is_calling(lone: LoneApi) -> None:
    caller = await lone.caller(scopes=("queries:write", "databases:read"))
    answer = await caller.get("/me")
    body = body_of(answer)
    assert body.keys() == {"data", "request_id"}
    data = body["data"]
    assert data.keys() == {"user", "api_key", "teams"}
    assert data["teams"] == [{"id": caller.team_id, "name": "Test User", "role": "owner"}]
    email = (await fetch("SELECT email FROM users WHERE id = $1", caller.user_id))[0]["email"]
    assert data["user"] == {"object": "user", "name": "Test User", "email": email}
    key = data["api_key"]
    assert key.pop("last_used_at") is None
    assert caller.api_key not in answer.text
    assert key == {
        "object": "api_key",
        "id": caller.key_id,
        "name": "test key",
        "preview": f"{caller.api_key[:12]}…{caller.api_key[-4:]}",
        "permissions": ["queries:write", "databases:read"],
        "status": "active",
        "controls": {
            "requests_per_minute": 100_000,
            "monthly_quota": None,
            "allowed_ip_list": [],
            "inactive_ttl_days": None,
        },
        "team_id": None,
        "databases": None,
    }


async def test_the_controls_of_a_key(lone: LoneApi) -> None:
    controls = KeyControls(
        requests_per_minute=7, monthly_quota=99, allowed_ips=("127.0.0.0/8", "::1/128"), inactive_ttl_days=30
    )
    caller = await lone.caller(controls=controls)
    assert data_of(await caller.get("/me"))["api_key"]["controls"] == {
        "requests_per_minute": 7,
        "monthly_quota": 99,
        "allowed_ip_list": ["127.0.0.0/8", "::1/128"],
        "inactive_ttl_days": 30,
    }


async def test_the_last_use_is_the_one_before(lone: LoneApi) -> None:
    caller = await lone.caller()
    await caller.get("/me")
    used = data_of(await caller.get("/me"))["api_key"]["last_used_at"]
    assert datetime.fromisoformat(used).tzinfo is not None
