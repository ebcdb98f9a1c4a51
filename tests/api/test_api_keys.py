"""`/api_keys`: keys that make, change, replace and revoke others, and never get more than somebody gave."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from app.auth.keys import KeyControls, create_key, hash_key
from app.auth.scopes import Scope
from app.auth.users import create_user
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import ALL_SCOPES, UNHURRIED, Caller
from tests.support.in_process import LoneApi
from tests.support.meeting import rows_held, waiters
from tests.support.together import together
from tests.support.waiting import until

MANAGING = ("keys:read", "keys:write")


def with_key(caller: Caller, body: dict[str, Any]) -> Caller:
    """The caller with the key that this answer gave."""
    return replace(caller, api_key=body["api_key"], key_id=body["data"]["id"])


async def minted(caller: Caller, *permissions: str, **fields: Any) -> Caller:
    body = {"name": "made", "permissions": [*(permissions or ALL_SCOPES)], **fields}
    return with_key(caller, body_of(await caller.post("/api_keys", body), 201))


async def in_force(caller: Caller) -> bool:
    answer = await caller.get("/me")
    return answer.is_success or error_of(answer, 403, "invalid_api_key") is None


async def test_a_key_is_shown_once(shared: LoneApi) -> None:
    caller = await shared.caller()
    asked = {
        "name": "report",
        "permissions": ["databases:read", "databases:read", "queries:write"],
        "expires_at": "2030-01-01T00:00:00+00:00",
        "controls": {"requests_per_minute": 60, "monthly_quota": 9, "allowed_ip_list": ["127.0.0.0/8"]},
    }
    answer = await caller.post("/api_keys", asked, key="once")
    body = body_of(answer, 201)
    text, shown = body["api_key"], body["data"]
    assert text.startswith("pk_live_")
    assert {name: shown[name] for name in ("name", "permissions", "status", "minted_by", "databases", "team_id")} == {
        "name": "report",
        "permissions": ["databases:read", "queries:write"],
        "status": "active",
        "minted_by": caller.key_id,
        "databases": None,
        "team_id": None,
    }
    assert shown["controls"] == {
        "requests_per_minute": 60,
        "monthly_quota": 9,
        "allowed_ip_list": ["127.0.0.0/8"],
        "inactive_ttl_days": None,
    }
    again = body_of(await caller.post("/api_keys", asked, key="once"), 201)
    assert (again["api_key"], again["idempotency_replay"]) == (text, True)
    assert data_of(await caller.get(f"/api_keys/{shown['id']}")) == shown
    listed = body_of(await caller.get("/api_keys"))["data"]
    assert [one["id"] for one in listed] == [shown["id"], caller.key_id]
    assert text not in (await caller.get("/api_keys")).text
    rows = await fetch("SELECT k::text FROM api_keys k WHERE id = $1", shown["id"])
    assert text not in rows[0][0]
    me = data_of(await with_key(caller, body).get("/me"))["api_key"]
    assert (me["id"], me["permissions"]) == (shown["id"], shown["permissions"])


async def test_another_key_of_the_user_is_not_given_the_answer(shared: LoneApi) -> None:
    caller = await shared.caller()
    weak = await minted(caller, *MANAGING)
    body = {"name": "strong", "permissions": ["databases:*"]}
    body_of(await caller.post("/api_keys", body, key="shared"), 201)
    error_of(await weak.post("/api_keys", body, key="shared"), 409, "idempotency_key_conflict")


async def test_what_is_not_given_is_as_the_asking_keys(shared: LoneApi) -> None:
    end = datetime.now(UTC) + timedelta(days=3)
    controls = KeyControls(
        requests_per_minute=9_000,
        monthly_quota=70_000,
        allowed_ips=("127.0.0.0/8",),
        inactive_ttl_days=5,
        expires_at=end,
    )
    caller = await shared.caller(controls=controls)
    made = data_of(await (await minted(caller)).get("/api_keys"))[0]
    assert made["controls"] == {
        "requests_per_minute": 9_000,
        "monthly_quota": 70_000,
        "allowed_ip_list": ["127.0.0.0/8"],
        "inactive_ttl_days": 5,
    }
    assert datetime.fromisoformat(made["expires_at"]) == end


EXCEEDING: list[tuple[str, dict[str, Any]]] = [
    ("permissions", {"permissions": ["databases:write"]}),
    ("permissions", {"permissions": ["databases:*"]}),
    ("controls.requests_per_minute", {"controls": {"requests_per_minute": 9_001}}),
    ("controls.monthly_quota", {"controls": {"monthly_quota": 70_001}}),
    ("controls.monthly_quota", {"controls": {"monthly_quota": None}}),
    ("controls.inactive_ttl_days", {"controls": {"inactive_ttl_days": 6}}),
    ("controls.inactive_ttl_days", {"controls": {"inactive_ttl_days": None}}),
    ("controls.allowed_ip_list", {"controls": {"allowed_ip_list": []}}),
    ("controls.allowed_ip_list", {"controls": {"allowed_ip_list": ["126.0.0.0/7"]}}),
    ("controls.allowed_ip_list", {"controls": {"allowed_ip_list": ["127.0.0.1", "::/0"]}}),
    ("expires_at", {"expires_at": "2039-01-01T00:00:00Z"}),
    ("expires_at", {"expires_at": None}),
]


@together("number", range(len(EXCEEDING)))
async def test_nobody_gives_more_than_they_have(shared: LoneApi, number: int) -> None:
    field, more = EXCEEDING[number]
    controls = KeyControls(
        requests_per_minute=9_000,
        monthly_quota=70_000,
        allowed_ips=("127.0.0.0/9", "127.128.0.0/9"),
        inactive_ttl_days=5,
        expires_at=datetime(2038, 1, 1, tzinfo=UTC),
    )
    caller = await shared.caller(scopes=("databases:read", *MANAGING), controls=controls)
    least = {"name": "more", "permissions": ["databases:read"], "controls": {"allowed_ip_list": ["127.0.0.0/8"]}}
    answer = await caller.post("/api_keys", {**least, **more})
    assert error_of(answer, 403, "exceeds_own_key")["details"] == {"field": field}
    made = await minted(caller, "databases:read")
    for key in (made.key_id, caller.key_id):
        answer = await caller.patch(f"/api_keys/{key}", more)
        assert error_of(answer, 403, "exceeds_own_key")["details"] == {"field": field}


async def test_two_limits_do_not_add_up(shared: LoneApi) -> None:
    """One key reads one database, the other writes another: together they don't write the first."""
    owner = await shared.caller()
    first, second = [data_of(await owner.create(f"db-{number}"), 202)["uuid"] for number in range(2)]
    reader = await minted(owner, "databases:read", *MANAGING)
    writer = await minted(owner, "databases:write", *MANAGING, databases=[second])
    error_of(await reader.patch(f"/api_keys/{writer.key_id}", {"databases": [first]}), 403, "exceeds_own_key")
    error_of(await reader.patch(f"/api_keys/{writer.key_id}", {"databases": None}), 403, "exceeds_own_key")
    # Narrower than it is, and the name: whoever manages it may.
    data_of(await reader.patch(f"/api_keys/{writer.key_id}", {"name": "less", "permissions": ["databases:write"]}))
    answer = await writer.get("/api_keys")
    assert error_of(answer, 403, "insufficient_scope")["details"]["required"] == "keys:read"
    error_of(await reader.post(f"/api_keys/{writer.key_id}/rotations", {}), 403, "exceeds_own_key")


async def test_a_key_for_some_databases(shared: LoneApi) -> None:
    owner = await shared.caller()
    mine, other, unlisted = [data_of(await owner.create(f"db-{number}"), 202)["uuid"] for number in range(3)]
    narrow = await minted(owner, databases=[mine, other])
    assert [one["uuid"] for one in data_of(await narrow.get("/databases"))] == [other, mine]
    page = body_of(await narrow.get("/databases", params={"limit": 1}))
    assert page["has_more"] is True
    rest = body_of(await narrow.get("/databases", params={"starting_after": page["data"][0]["uuid"]}))
    assert [one["uuid"] for one in rest["data"]] == [mine]
    assert data_of(await narrow.get(f"/databases/{mine}"))["uuid"] == mine
    for method, path in (
        ("GET", f"/databases/{unlisted}"),
        ("DELETE", f"/databases/{unlisted}"),
        ("PATCH", f"/databases/{unlisted}"),
        ("PATCH", f"/databases/{unlisted}/quotas"),
        ("POST", f"/databases/{unlisted}/undeletions"),
        ("POST", f"/databases/{unlisted}/blueprint_applications"),
        ("POST", f"/databases/{unlisted}/credential_rotations"),
        ("GET", f"/databases/{unlisted}/credentials"),
        ("GET", f"/databases/{unlisted}/users"),
    ):
        error_of(await narrow.request(method, path, key=str(uuid4()), content="{}"), 404, "not_found")
    question = {"database_uuid": unlisted, "query": "how many?"}
    error_of(await narrow.post("/query_executions", question), 404, "not_found")
    for method, path in (
        ("POST", "/databases"),
        ("GET", "/deleted_databases"),
        ("GET", "/webhook_endpoints"),
        ("POST", "/webhook_endpoints"),
        ("POST", "/blueprints"),
    ):
        answer = await narrow.request(method, path, key=str(uuid4()), content='{"name": "x", "url": "https://x.y"}')
        error_of(answer, 403, "key_for_some_databases")
    operations = data_of(await owner.get("/operations"))
    under_way = {one["database_uuid"]: one["uuid"] for one in operations}
    assert data_of(await narrow.get(f"/operations/{under_way[mine]}"))["uuid"] == under_way[mine]
    for path in ("", "/events"):
        error_of(await narrow.get(f"/operations/{under_way[unlisted]}{path}"), 404, "not_found")
    for path in ("cancellations", "retries"):
        error_of(await narrow.post(f"/operations/{under_way[unlisted]}/{path}", {}), 404, "not_found")
    assert field_of(await narrow.get("/operations")) == "database_uuid"
    assert data_of(await narrow.get("/operations", params={"database_uuid": unlisted})) == []
    assert len(data_of(await narrow.get("/operations", params={"database_uuid": mine}))) == 1
    # Nor by another key.
    answer = await narrow.post("/api_keys", {"name": "all", "permissions": ["databases:*"], "databases": None})
    assert error_of(answer, 403, "exceeds_own_key")["details"] == {"field": "databases"}
    answer = await narrow.post("/api_keys", {"name": "all", "permissions": ["databases:*"], "databases": [unlisted]})
    assert field_of(answer) == "databases"
    one = await minted(narrow, databases=[mine])
    assert [one["uuid"] for one in data_of(await one.get("/databases"))] == [mine]
    error_of(await narrow.patch(f"/api_keys/{one.key_id}", {"databases": None}), 403, "exceeds_own_key")
    # It manages the keys that are for no more than it is for.
    listed = {each["id"] for each in data_of(await narrow.get("/api_keys"))}
    assert listed == {narrow.key_id, one.key_id}
    for path in (f"/api_keys/{owner.key_id}", "/api_keys/999999999", "/api_keys/x"):
        error_of(await narrow.get(path), 404, "not_found")
        error_of(await narrow.patch(path, {"name": "mine"}), 404, "not_found")
        error_of(await narrow.delete(path), 404, "not_found")
        error_of(await narrow.post(f"{path}/rotations", {}), 404, "not_found")
    assert field_of(await narrow.get("/api_keys", params={"starting_after": owner.key_id})) == "starting_after"


async def test_a_key_for_one_team(shared: LoneApi) -> None:
    owner = await shared.caller()
    elsewhere = await create_user(email=f"{uuid4().hex}@example.com", name="Another", tier="pro")
    await fetch("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", owner.user_id, elsewhere.team_id)
    here = data_of(await owner.create("here"), 202)["uuid"]
    there = data_of(await owner.create("there", team_id=elsewhere.team_id), 202)["uuid"]
    narrow = await minted(owner, team_id=elsewhere.team_id)
    assert [one["uuid"] for one in data_of(await narrow.get("/databases"))] == [there]
    error_of(await narrow.get(f"/databases/{here}"), 404, "not_found")
    assert data_of(await narrow.create("mine"), 202)["team_id"] == elsewhere.team_id
    assert field_of(await narrow.create("mine", team_id=owner.team_id)) == "team_id"
    for team in (owner.team_id, None):
        answer = await narrow.patch(f"/api_keys/{narrow.key_id}", {"team_id": team})
        assert answer.status_code in (403, 422), answer.text
    assert {one["id"] for one in data_of(await narrow.get("/api_keys"))} == {narrow.key_id}
    assert field_of(await owner.post("/api_keys", _least(team_id=999_999_999))) == "team_id"
    await fetch("DELETE FROM memberships WHERE user_id = $1 AND team_id = $2", owner.user_id, elsewhere.team_id)
    assert error_of(await narrow.get("/databases"), 403, "not_a_member")["details"] == {"team_id": elsewhere.team_id}


def _least(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "permissions": ["databases:read"], **fields}


@together(
    ("field", "fields"),
    [
        ("permissions", {"permissions": []}),
        ("permissions", {"permissions": ["databases:all"]}),
        ("name", {"name": " "}),
        ("name", {"name": ""}),
        ("controls.allowed_ip_list", {"controls": {"allowed_ip_list": ["10.0.0.0/33"]}}),
        ("controls.allowed_ip_list", {"controls": {"allowed_ip_list": ["fe80::1%eth0"]}}),
        ("controls.inactive_ttl_days", {"controls": {"inactive_ttl_days": 2**31 - 1}}),
        ("expires_at", {"expires_at": "9999-12-31T23:59:59-14:00"}),
        ("controls.requests_per_minute", {"controls": {"requests_per_minute": 0}}),
        ("controls.requests_per_minute", {"controls": {"requests_per_minute": None}}),
        ("controls.colour", {"controls": {"colour": "red"}}),
        ("databases", {"databases": []}),
        ("databases", {"databases": [str(uuid4())]}),
        ("expires_at", {"expires_at": "2020-01-01T00:00:00Z"}),
        ("expires_at", {"expires_at": "2030-01-01T00:00:00"}),
        ("team_id", {"team_id": 0}),
        ("scopes", {"scopes": ["databases:read"]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_be(asking: Caller, field: str, fields: dict[str, Any]) -> None:
    answer = await asking.post("/api_keys", _least(**fields))
    assert field_of(answer) == field
    if fields == {"permissions": ["databases:all"]}:
        assert all(scope in answer.json()["error"]["message"] for scope in ("'databases:all'", *Scope))
    assert field_of(await asking.patch(f"/api_keys/{asking.key_id}", fields)) == field


async def test_no_limit_of_a_key_keeps_other_keys_out(shared: LoneApi) -> None:
    """Requests that are let in share a statement: it has to read what every key says."""
    caller, other = await shared.caller(), await shared.caller()
    networks = ["127.0.0.0/255.0.0.0", "10.0.0.9/0.0.0.255", "2001:DB8::/032", "203.0.113.7"]
    limits = {"allowed_ip_list": networks, "inactive_ttl_days": 36_500}
    odd = await minted(caller, controls=limits, expires_at="9998-12-31T23:59:59-14:00")
    answers = await asyncio.gather(*(one.get("/me") for one in [odd, other] * 8))
    assert {answer.status_code for answer in answers} == {200}
    controls = data_of(answers[0])["api_key"]["controls"]
    assert controls["allowed_ip_list"] == ["127.0.0.0/8", "10.0.0.0/24", "2001:db8::/32", "203.0.113.7"]
    (changed, stored) = (
        await odd.patch(f"/api_keys/{odd.key_id}", {"controls": {"allowed_ip_list": networks[:1]}}),
        await odd.get(f"/api_keys/{odd.key_id}"),
    )
    assert data_of(changed)["controls"]["allowed_ip_list"] == ["127.0.0.0/8"]
    assert data_of(stored) == data_of(changed) | {"last_used_at": data_of(stored)["last_used_at"]}


async def test_a_key_that_cannot_be_read_keeps_no_other_out(shared: LoneApi) -> None:
    """Whatever wrote it: nothing that the service takes."""
    broken, other = await shared.caller(), await shared.caller()
    await fetch("UPDATE api_keys SET allowed_ips = '{not-a-network}' WHERE id = $1", broken.key_id)
    answers = await asyncio.gather(*(one.get("/me") for one in [broken, other] * 8))
    assert [answer.status_code for answer in answers] == [500, 200] * 8


async def test_both_texts_work_during_an_overlap(shared: LoneApi) -> None:
    caller = await shared.caller()
    key = await minted(caller, controls={"requests_per_minute": 12})
    body = body_of(await caller.post(f"/api_keys/{key.key_id}/rotations", {"overlap_seconds": 3600}, key="r"), 201)
    new = with_key(key, body)
    assert (body["data"]["id"], body["data"]["preview"]) == (key.key_id, f"{new.api_key[:12]}…{new.api_key[-4:]}")
    assert body["data"]["previous"]["expires_at"]
    again = body_of(await caller.post(f"/api_keys/{key.key_id}/rotations", {"overlap_seconds": 3600}, key="r"), 201)
    assert again["api_key"] == body["api_key"]
    # One key: both texts together have its rate.
    answers = [await one.get("/me") for one in [key, new] * 8]
    assert [answer.status_code for answer in answers] == [200] * 12 + [429] * 4
    await fetch("UPDATE api_keys SET previous_until = now() WHERE id = $1", key.key_id)
    error_of(await key.get("/me"), 403, "invalid_api_key")
    assert data_of(await caller.get(f"/api_keys/{key.key_id}"))["previous"] is None


async def test_both_texts_at_once_are_counted_as_one_key(shared: LoneApi) -> None:
    caller = await shared.caller()
    key = await minted(caller, controls={"requests_per_minute": 30})
    new = with_key(key, body_of(await caller.post(f"/api_keys/{key.key_id}/rotations", {}), 201))
    answers = await asyncio.gather(*(one.get("/me") for one in [key, new] * 40))
    assert sorted(answer.status_code for answer in answers) == [200] * 30 + [429] * 50


async def test_one_text_does_not_hold_up_the_other(shared: LoneApi) -> None:
    caller = await shared.caller()
    key = await minted(caller)
    new = with_key(key, body_of(await caller.post(f"/api_keys/{key.key_id}/rotations", {}), 201))
    done = asyncio.Event()

    async def ask_on() -> None:
        while not done.is_set():
            data_of(await new.get("/me"))

    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(ask_on())
        for _ in range(10):
            data_of(await key.get("/me"))
        done.set()


async def test_without_an_overlap_the_old_text_is_refused_at_once(shared: LoneApi) -> None:
    caller = await shared.caller()
    key = await minted(caller)
    first = with_key(key, body_of(await key.post(f"/api_keys/{key.key_id}/rotations", {}), 201))
    second = with_key(key, body_of(await first.post(f"/api_keys/{key.key_id}/rotations", {}), 201))
    # There are never three.
    assert [await in_force(one) for one in (first, second)] == [True, True]
    error_of(await key.get("/me"), 403, "invalid_api_key")
    third = with_key(key, body_of(await second.post(f"/api_keys/{key.key_id}/rotations", {"overlap_seconds": 0}), 201))
    for ended in (first, second):
        error_of(await ended.get("/me"), 403, "invalid_api_key")
    assert data_of(await third.get("/me"))


@together("again", [False, True])
async def test_a_text_that_is_being_replaced_makes_no_key(shared: LoneApi, again: bool) -> None:
    """Nor does it take the key back: what came with it, and waits for the rotation, is refused after it."""
    leaked = await shared.caller()
    path = f"/api_keys/{leaked.key_id}/rotations" if again else "/api_keys"
    body = {} if again else {"name": "stolen", "permissions": [*ALL_SCOPES]}
    renewed = hash_key(f"the next of {leaked.key_id}")
    async with rows_held(shared.control_dsn, "users") as other:
        asked = asyncio.ensure_future(leaked.post(path, body))
        await until(waiters)
        await other.execute("UPDATE api_keys SET hash = $2 WHERE id = $1", leaked.key_id, renewed)
    error_of(await asked, 403, "invalid_api_key")
    keys = await fetch("SELECT hash FROM api_keys WHERE user_id = $1", leaked.user_id)
    assert [key["hash"] for key in keys] == [renewed]


@together("limit", ["allowed_ips = '{192.0.2.0/24}'", "scopes = array_remove(scopes, 'keys:write')"])
async def test_a_key_that_is_being_limited_renews_no_text(shared: LoneApi, limit: str) -> None:
    leaked = await shared.caller()
    async with rows_held(shared.control_dsn, "users") as other:
        asked = asyncio.ensure_future(leaked.post(f"/api_keys/{leaked.key_id}/rotations", {"overlap_seconds": 0}))
        await until(waiters)
        await other.execute(f"UPDATE api_keys SET {limit} WHERE id = $1", leaked.key_id)
    error_of(await asked, 403, "invalid_api_key")
    [key] = await fetch("SELECT hash FROM api_keys WHERE user_id = $1", leaked.user_id)
    assert key["hash"] == hash_key(leaked.api_key)


async def test_revoking(shared: LoneApi) -> None:
    caller = await shared.caller()
    parent = await minted(caller)
    child = await minted(parent)
    grandchild = await minted(child)
    other = await minted(caller)
    parents_new = with_key(parent, body_of(await parent.post(f"/api_keys/{parent.key_id}/rotations", {}), 201))
    ended = body_of(await caller.delete(f"/api_keys/{parent.key_id}", key="first"))
    assert ended["data"]["minted_revoked"] == []
    for text in (parent, parents_new):
        error_of(await text.get("/me"), 403, "invalid_api_key")
    assert await in_force(child)
    again = body_of(await caller.delete(f"/api_keys/{parent.key_id}", key="first"))
    assert (again["data"], again["idempotency_replay"]) == (ended["data"], True)
    answer = await caller.request("DELETE", f"/api_keys/{parent.key_id}?minted=true", key=str(uuid4()))
    after = data_of(answer)
    assert after["revoked_at"] == ended["data"]["revoked_at"]
    assert after["minted_revoked"] == [child.key_id, grandchild.key_id]
    for key in (child, grandchild):
        error_of(await key.get("/me"), 403, "invalid_api_key")
    assert await in_force(other)
    shown = data_of(await caller.get(f"/api_keys/{child.key_id}"))
    assert (shown["status"], shown["minted_by"]) == ("revoked", parent.key_id)
    for path in (f"/api_keys/{child.key_id}", f"/api_keys/{child.key_id}/rotations"):
        ask = caller.patch if path.endswith(str(child.key_id)) else caller.post
        error_of(await ask(path, {}), 404, "not_found")
    data_of(await other.delete(f"/api_keys/{other.key_id}"))
    error_of(await other.get("/me"), 403, "invalid_api_key")


async def test_a_change_holds_from_the_next_request_on(shared: LoneApi) -> None:
    caller = await shared.caller()
    key = await minted(caller)
    data_of(await key.get("/databases"))
    data_of(await caller.patch(f"/api_keys/{key.key_id}", {"permissions": ["webhooks:read"]}))
    error_of(await key.get("/databases"), 403, "insufficient_scope")
    # 127.0.0.1 is where the tests are.
    data_of(await caller.patch(f"/api_keys/{key.key_id}", {"controls": {"allowed_ip_list": ["192.0.2.1"]}}))
    error_of(await key.get("/webhook_endpoints"), 403, "ip_not_allowed")
    data_of(await caller.patch(f"/api_keys/{key.key_id}", {"controls": {"allowed_ip_list": []}}))
    data_of(await key.get("/webhook_endpoints"))


async def test_a_user_has_so_many_keys(lone: LoneApi) -> None:
    caller = await lone.caller()
    for number in range(99):
        await create_key(user_id=caller.user_id, name=str(number), scopes=["databases:read"], controls=UNHURRIED)
    error_of(await caller.post("/api_keys", _least()), 422, "key_limit_reached")
    (newest,) = data_of(await caller.get("/api_keys", params={"limit": 1}))
    data_of(await caller.delete(f"/api_keys/{newest['id']}"))
    body_of(await caller.post("/api_keys", _least()), 201)


async def test_keys_of_others_are_not_there(shared: LoneApi) -> None:
    caller, stranger = await shared.caller(), await shared.caller()
    path = f"/api_keys/{caller.key_id}"
    error_of(await stranger.get(path), 404, "not_found")
    error_of(await stranger.patch(path, {"name": "mine"}), 404, "not_found")
    error_of(await stranger.delete(path), 404, "not_found")
    error_of(await stranger.post(f"{path}/rotations", {}), 404, "not_found")
    database = data_of(await caller.create("theirs"), 202)["uuid"]
    assert field_of(await stranger.post("/api_keys", _least(databases=[database]))) == "databases"


async def test_the_scopes(shared: LoneApi) -> None:
    reader = await shared.caller(scopes=("keys:read",))
    writer = await shared.caller(scopes=("keys:write",))
    for answer in (
        await reader.post("/api_keys", _least()),
        await reader.patch(f"/api_keys/{reader.key_id}", {}),
        await reader.delete(f"/api_keys/{reader.key_id}"),
        await reader.post(f"/api_keys/{reader.key_id}/rotations", {}),
        await writer.get("/api_keys"),
        await writer.get(f"/api_keys/{writer.key_id}"),
    ):
        error_of(answer, 403, "insufficient_scope")
