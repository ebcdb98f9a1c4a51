"""One event for each change by the API, whatever is refused, repeated or sent at the same time."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.store.session import execute, fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.moves import make_active
from tests.support.store import execute_at

_EVENTS = "SELECT *, changes::text AS changed FROM audit_events ORDER BY id"


async def events() -> list[dict[str, Any]]:
    return [dict(row) for row in await fetch(_EVENTS)]


async def outcomes() -> list[tuple[str, str, str | None]]:
    return [(one["action"], one["outcome"], one["error"]) for one in await events()]


async def test_an_event_says_who_did_what(lone: LoneApi) -> None:
    caller = await lone.caller()
    answer = await caller.create("a")
    uuid = data_of(answer, 202)["uuid"]
    await caller.patch(f"/databases/{uuid}", {"name": "b"})
    made, renamed = await events()
    assert {name: made[name] for name in ("actor_kind", "user_id", "api_key_id", "action", "object", "subject_id")} == {
        "actor_kind": "key",
        "user_id": caller.user_id,
        "api_key_id": caller.key_id,
        "action": "database.create",
        "object": "database",
        "subject_id": uuid,
    }
    assert (made["team_id"], made["outcome"], made["error"]) == (caller.team_id, "succeeded", None)
    assert made["request_id"] == answer.headers["x-request-id"]
    assert made["address"] == "127.0.0.1"
    assert (renamed["action"], renamed["subject_id"]) == ("database.change", uuid)
    assert renamed["changed"] == '{"name": ["a", "b"]}'


async def test_an_event_says_what_a_new_key_may_do(lone: LoneApi) -> None:
    caller = await lone.caller()
    asked = {"name": "report", "permissions": ["databases:read"], "team_id": caller.team_id}
    body_of(await caller.post("/api_keys", {**asked, "expires_at": "2031-01-01T00:00:00Z"}), 201)
    (made,) = await events()
    told = json.loads(made["changed"])
    assert told.pop("requests_per_minute")[0] is None
    assert told == {
        "name": [None, "report"],
        "scopes": [None, ["databases:read"]],
        "team_id": [None, caller.team_id],
        "expires_at": [None, "2031-01-01T00:00:00Z"],
    }


async def test_reading_and_computing_leave_none(lone: LoneApi) -> None:
    caller = await lone.caller()
    await caller.get("/databases")
    data_of(await caller.post("/blueprint_validations", {"sql_content": "SELECT 1"}))
    assert await events() == []


async def test_an_application_is_about_the_team_of_its_database(lone: LoneApi) -> None:
    """The blueprint is another team's, in which the caller only reads."""
    author, caller = await lone.caller(), await lone.caller()
    await execute(
        "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'viewer')", caller.user_id, author.team_id
    )
    asked = {"name": "b", "sql_content": "SELECT {{a}}", "variables": {"a": {"type": "integer", "default": 1}}}
    body = {"blueprint_uuid": data_of(await author.post("/blueprints", asked), 201)["uuid"], "wait": False}
    database = data_of(await caller.create("a"), 202)["uuid"]
    await make_active(database)
    path = f"/databases/{database}/blueprint_applications"
    first = data_of(await caller.post(path, body, key="k"), 202)
    again = body_of(await caller.post(path, body, key="k"), 202)
    assert (again["data"]["id"], again["idempotency_replay"]) == (first["id"], True)
    [applied] = [one for one in await events() if one["action"] == "blueprint.apply"]
    assert (applied["team_id"], applied["outcome"]) == (caller.team_id, "succeeded")


async def test_a_replay_adds_none(lone: LoneApi) -> None:
    caller = await lone.caller()
    for _ in range(2):
        data_of(await caller.create("a", key="k"), 202)
    nowhere = uuid4()
    for _ in range(2):
        error_of(await caller.delete(f"/databases/{nowhere}", key="gone"), 404, "not_found")
    assert await outcomes() == [("database.create", "succeeded", None), ("database.delete", "refused", "not_found")]


async def test_16_at_once_make_one(lone: LoneApi) -> None:
    caller = await lone.caller()
    await lone.warm_up()
    await asyncio.gather(*(caller.create("a", key="k") for _ in range(16)))
    await asyncio.gather(*(caller.delete(f"/databases/{uuid4()}", key=str(n)) for n in range(16)))
    found = await outcomes()
    assert found.count(("database.create", "succeeded", None)) == 1
    assert found.count(("database.delete", "refused", "not_found")) == 16
    assert len(found) == 17


async def test_a_retry_after_a_crash_adds_none(lone: LoneApi) -> None:
    """The process died after the commit, before the answer was stored."""
    caller = await lone.caller()
    uuid = data_of(await caller.create("a", key="k"), 202)["uuid"]
    await execute("UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL")
    assert data_of(await caller.create("a", key="k"), 202)["uuid"] == uuid
    assert len(await events()) == 1


async def test_a_change_that_is_rolled_back_leaves_none(lone: LoneApi, control_admin_dsn: str) -> None:
    """Our own database refuses the event: then there is no change either."""
    caller = await lone.caller()
    await execute_at(
        control_admin_dsn, "ALTER TABLE audit_events ADD CONSTRAINT none CHECK (action <> 'database.create')"
    )
    assert (await caller.create("a", key="k")).status_code == 500
    assert await fetch("SELECT FROM databases") == []
    await execute_at(control_admin_dsn, "ALTER TABLE audit_events DROP CONSTRAINT none")
    data_of(await caller.create("a", key="k"), 202)
    assert await outcomes() == [("database.create", "succeeded", None)]


async def _narrow(api: LoneApi, _: Caller) -> httpx.Response:
    narrow = await api.caller(scopes=("databases:read",))
    return await narrow.create("a")


async def _unreadable(_: LoneApi, caller: Caller) -> httpx.Response:
    return await caller.request("POST", "/databases", key="k", content=b"{")


async def _conflicting(_: LoneApi, caller: Caller) -> httpx.Response:
    await caller.create("a", key="k")
    return await caller.create("b", key="k")


async def _misspelt(_: LoneApi, caller: Caller) -> httpx.Response:
    return await caller.post("/databases?nmae=a", {"name": "a"})


async def _no_key(_: LoneApi, caller: Caller) -> httpx.Response:
    return await caller.request("POST", "/databases", content=b'{"name": "a"}')


async def _protected(_: LoneApi, caller: Caller) -> httpx.Response:
    uuid = data_of(await caller.create("a", deletion_protection=True), 202)["uuid"]
    await make_active(uuid)
    return await caller.delete(f"/databases/{uuid}")


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (_narrow, "insufficient_scope"),
        (_unreadable, "malformed_json"),
        (_conflicting, "idempotency_key_conflict"),
        (_misspelt, "invalid_field"),
        (_no_key, "missing_required_field"),
        (_protected, "deletion_protected"),
    ],
)
async def test_refusals_leave_one(lone: LoneApi, refused: Any, code: str) -> None:
    answer = await refused(lone, await lone.caller())
    assert answer.json()["error"]["code"] == code
    *_, last = await events()
    assert (last["outcome"], last["error"], last["request_id"]) == ("refused", code, answer.headers["x-request-id"])


async def test_an_event_is_of_the_team_whose_thing_it_is(lone: LoneApi) -> None:
    """Of a user in two teams; and what is somebody else's is told in the caller's own team."""
    caller, other = await lone.caller(), await lone.caller()
    theirs = data_of(await other.create("theirs"), 202)["uuid"]
    error_of(await caller.patch(f"/databases/{theirs}", {"name": "x"}), 404, "not_found")
    await execute(
        "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'owner')", caller.user_id, other.team_id
    )
    data_of(await caller.patch(f"/databases/{theirs}", {"name": "x"}))
    error_of(await caller.patch(f"/databases/{theirs}", {"expires_at": "2020-01-01T00:00:00Z"}), 422, "invalid_field")
    error_of(await caller.request("DELETE", f"/databases/{theirs}"), 422, "missing_required_field")
    asked = {"url": "http://example.com/", "team_id": other.team_id}
    error_of(await caller.post("/webhook_endpoints", asked), 422, "invalid_field")
    assert [one["team_id"] for one in await events()] == [other.team_id, caller.team_id, *[other.team_id] * 4]


async def test_refusals_in_an_hour_are_bounded(control_dsn: str) -> None:
    async with lone_api(control_dsn, audit_refusals_per_hour=3) as api:
        caller, other = await api.caller(), await api.caller()
        await asyncio.gather(*(caller.delete(f"/databases/{uuid4()}") for _ in range(8)))
        await other.delete(f"/databases/{uuid4()}")
        found = await fetch("SELECT user_id, count(*) AS events FROM audit_events GROUP BY 1 ORDER BY 1")
        assert [tuple(row) for row in found] == [(caller.user_id, 3), (other.user_id, 1)]
        counted = await fetch("SELECT refusals FROM audit_refusals WHERE user_id = $1", caller.user_id)
        assert [row["refusals"] for row in counted] == [8]


async def test_what_is_done_to_a_key_is_in_the_log_of_the_team_that_it_is_for(lone: LoneApi) -> None:
    admin, guest = await lone.caller(), await lone.caller()
    team, joining = guest.team_id + 1_000, "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)"
    await fetch("INSERT INTO teams (id, name, tier) VALUES ($1, 'shared', 'pro')", team)
    for user, role in ((admin.user_id, "admin"), (guest.user_id, "member")):
        await fetch(joining, user, team, role)
    asked = {"name": "k", "permissions": ["databases:read"]}
    bound = data_of(await guest.post("/api_keys", {**asked, "team_id": team}), 201)
    wide = data_of(await guest.post("/api_keys", asked), 201)
    data_of(await guest.patch(f"/api_keys/{bound['id']}", {"name": "other"}))
    body_of(await guest.post(f"/api_keys/{bound['id']}/rotations", {}), 201)
    for key in (bound, wide):
        data_of(await admin.delete(f"/api_keys/{key['id']}"))
    told = [(one["action"], one["subject_id"], one["team_id"]) for one in await events()]
    ours, theirs = str(bound["id"]), str(wide["id"])
    assert told == [
        ("api_key.create", ours, team),
        ("api_key.create", theirs, guest.team_id),
        ("api_key.change", ours, team),
        ("api_key.rotate", ours, team),
        ("api_key.revoke", ours, team),
        ("api_key.revoke", theirs, team),
    ]


async def test_a_log_names_no_database_of_another_team(lone: LoneApi) -> None:
    guest = await lone.caller()
    team, joining = guest.team_id + 1_000, "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'member')"
    await fetch("INSERT INTO teams (id, name, tier) VALUES ($1, 'other', 'pro')", team)
    await fetch(joining, guest.user_id, team)
    elsewhere = data_of(await guest.create("a", team_id=team), 202)["uuid"]
    asked = {"name": "k", "permissions": ["databases:read"], "databases": [elsewhere]}
    data_of(await guest.post("/api_keys", asked), 201)
    data_of(await guest.post("/api_keys", {**asked, "team_id": team}), 201)
    _, wide, bound = await events()
    assert (wide["team_id"], json.loads(wide["changed"])["databases"]) == (guest.team_id, [None, 1])
    assert (bound["team_id"], json.loads(bound["changed"])["databases"]) == (team, [None, [elsewhere]])


@pytest.mark.parametrize("authorization", [None, "Bearer pk_live_unknown"])
async def test_whoever_is_not_known_leaves_none(lone: LoneApi, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    assert (await lone.http.post("/api/v1/databases", headers=headers)).status_code in (401, 403)
    assert await events() == []


async def test_secrets_and_bodies_are_not_written(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = data_of(await caller.post("/api_keys", {"name": "k", "permissions": ["databases:read"]}), 201)
    data_of(await caller.patch(f"/api_keys/{made['id']}", {"name": "other"}))
    data_of(await caller.post("/blueprints", {"name": "b", "sql_content": "CREATE TABLE sesame (id int)"}), 201)
    text = str(await events())
    assert "sesame" not in text
    assert "pk_live" not in text
    assert '"name": ["k", "other"]' in text
