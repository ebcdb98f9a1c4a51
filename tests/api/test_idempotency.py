"""One key, one change, one answer. Interface specification, section 4.13."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.support.store import execute_at
from tests.support.waiting import until


async def databases() -> int:
    count: int = (await fetch("SELECT count(*) FROM databases"))[0]["count"]
    return count


def same_but_marked(replay: dict[str, Any], original: dict[str, Any]) -> bool:
    """Whether a replay is the original, marked, under its own request id."""
    assert replay["request_id"] != original["request_id"]
    assert "idempotency_replay" not in original
    return replay == {**original, "request_id": replay["request_id"], "idempotency_replay": True}


async def test_a_create_is_replayed(lone: LoneApi) -> None:
    caller = await lone.caller()
    original = body_of(await caller.create("a", key="k"), 202)
    # What has happened since is not in the answer: it is the one of then.
    await make_active(original["data"]["uuid"])
    assert same_but_marked(body_of(await caller.create("a", key="k"), 202), original)
    assert await databases() == 1


async def test_changes_are_replayed(lone: LoneApi) -> None:
    caller = await lone.caller()
    path = f"/databases/{data_of(await caller.create('a'), 202)['uuid']}"
    for change, body in (("", {"name": "b"}), ("/quotas", {"warning_threshold_pct": 5})):
        original = body_of(await caller.patch(f"{path}{change}", body, key=f"k{change}"))
        assert same_but_marked(body_of(await caller.patch(f"{path}{change}", body, key=f"k{change}")), original)
    revisions = await fetch("SELECT limits_revision FROM databases")
    assert revisions[0]["limits_revision"] == 1
    original = body_of(await caller.delete(path, key="delete"))
    assert same_but_marked(body_of(await caller.delete(path, key="delete")), original)


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"a","plan":"free"}',
        b'  {"plan" : "free",\n "name" : "a"}  ',
        b'{"name":"\\u0061","plan":"free"}',
    ],
)
async def test_bodies_that_mean_the_same_are_the_same(lone: LoneApi, body: bytes) -> None:
    caller = await lone.caller()
    data_of(await caller.request("POST", "/databases", key="k", content=b'{"name": "a", "plan": "free"}'), 202)
    answer = await caller.request("POST", "/databases", key="k", content=body)
    assert body_of(answer, 202)["idempotency_replay"] is True


@pytest.mark.parametrize(
    "other",
    [
        {"name": "b"},
        {"name": "a", "plan": "free"},
        {"name": "a", "connection_hard_limit": None},
    ],
)
async def test_another_body_is_a_conflict(lone: LoneApi, other: dict[str, Any]) -> None:
    caller = await lone.caller()
    data_of(await caller.post("/databases", {"name": "a"}, key="k"), 202)
    error_of(await caller.post("/databases", other, key="k"), 409, "idempotency_key_conflict")
    assert await databases() == 1
    # The key still stands for the first request.
    assert body_of(await caller.post("/databases", {"name": "a"}, key="k"), 202)["idempotency_replay"] is True


async def test_another_method_path_or_query_is_a_conflict(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.post("/databases", {"name": "a"}, key="k"), 202)["uuid"]
    others = [
        await caller.post("/databases", {"name": "a"}, key="k", params={"timeout": "5"}),
        await caller.patch(f"/databases/{uuid}", {"name": "a"}, key="k"),
        await caller.delete(f"/databases/{uuid}", key="k"),
    ]
    for answer in others:
        error_of(answer, 409, "idempotency_key_conflict")
    assert data_of(await caller.get(f"/databases/{uuid}"))["status"] == "provisioning"


async def test_keys_are_each_users_own(lone: LoneApi) -> None:
    one, other = await lone.caller(), await lone.caller()
    first, second = [data_of(await caller.create("a", key="k"), 202) for caller in (one, other)]
    assert first["uuid"] != second["uuid"]


async def test_the_quoted_form_is_the_same_key(lone: LoneApi) -> None:
    caller = await lone.caller()
    body_of(await caller.create("a", key="k"), 202)
    assert body_of(await caller.create("a", key='"k"'), 202)["idempotency_replay"] is True


@pytest.mark.parametrize("key", ["x" * 256, "\x7f", "é"])
async def test_a_key_that_cannot_be(lone: LoneApi, key: str) -> None:
    caller = await lone.caller()
    headers = {b"Idempotency-Key": key.encode("latin-1"), b"Authorization": f"Bearer {caller.api_key}".encode()}
    answer = await lone.http.post("/api/v1/databases", json={"name": "a"}, headers=headers)
    assert field_of(answer) == "Idempotency-Key"


async def test_two_keys_that_differ(lone: LoneApi) -> None:
    caller = await lone.caller()
    headers = [("Authorization", f"Bearer {caller.api_key}"), ("Idempotency-Key", "k"), ("Idempotency-Key", "l")]
    assert field_of(await lone.http.post("/api/v1/databases", json={"name": "a"}, headers=headers)) == "Idempotency-Key"


@pytest.mark.parametrize("key", ["", "  ", '""'])
async def test_an_empty_key_is_a_missing_one(lone: LoneApi, key: str) -> None:
    caller = await lone.caller()
    answer = await caller.request("POST", "/databases", key=key, json={"name": "a"})
    assert field_of(answer, "missing_required_field") == "Idempotency-Key"


async def test_in_progress_while_the_first_waits(lone: LoneApi) -> None:
    caller = await lone.caller()
    first = asyncio.create_task(caller.create("a", wait=True, key="k"))
    (row,) = await until(lambda: fetch("SELECT uuid FROM databases"))
    error_of(await caller.create("a", wait=True, key="k"), 409, "idempotency_key_in_progress")
    error_of(await caller.create("b", wait=True, key="k"), 409, "idempotency_key_conflict")
    await make_active(str(row["uuid"]))
    original = body_of(await first, 201)
    assert same_but_marked(body_of(await caller.create("a", wait=True, key="k"), 201), original)
    assert await databases() == 1


async def test_refusals_by_the_rules_are_replayed(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    uuid = data_of(await caller.create(), 202)["uuid"]
    refused = await caller.create("b", key="k")
    original = body_of(refused, 422)
    # There would be room now, yet the key's answer was given.
    await fetch("UPDATE databases SET status = 'deleted'")
    assert same_but_marked(body_of(await caller.create("b", key="k"), 422), original)
    missing = body_of(await caller.patch(f"/databases/{uuid}", {"name": "c"}, key="m"), 404)
    await fetch("UPDATE databases SET status = 'active'")
    assert same_but_marked(body_of(await caller.patch(f"/databases/{uuid}", {"name": "c"}, key="m"), 404), missing)


async def test_refusals_of_the_request_itself_keep_no_key(lone: LoneApi) -> None:
    caller = await lone.caller()
    reader = Caller(lone.http, "", caller.user_id, caller.team_id, 0)
    refused = [
        await reader.create("a", key="k"),
        await caller.request("POST", "/databases", key="k", content=b"{"),
        await caller.create("A", key="k"),
        await caller.create("a", key="k", colour="red"),
        await caller.post("/databases", {"name": "a"}, key="k", params={"timeout": "0"}),
        await caller.request("POST", "/databases", key="k", content=b" " * (2 * 1024 * 1024)),
    ]
    assert [answer.status_code for answer in refused] == [401, 400, 422, 422, 422, 413]
    assert not await fetch("SELECT 1 FROM idempotency_keys")
    body_of(await caller.create("a", key="k"), 202)


async def test_a_full_host_is_no_lasting_answer(lone: LoneApi) -> None:
    caller = await lone.caller()
    await fetch("UPDATE engine_hosts SET capacity = 0")
    error_of(await caller.create("a", key="k"), 422, "capacity_exhausted")
    await fetch("UPDATE engine_hosts SET capacity = 9")
    assert "idempotency_replay" not in body_of(await caller.create("a", key="k"), 202)


async def test_an_unexpected_failure_is_no_lasting_answer(lone: LoneApi, control_admin_dsn: str) -> None:
    caller = await lone.caller()
    await execute_at(control_admin_dsn, "ALTER TABLE events RENAME TO mislaid")
    error_of(await caller.create("a", key="k"), 500, "internal_error")
    assert await databases() == 0
    assert not await fetch("SELECT 1 FROM idempotency_keys")
    await execute_at(control_admin_dsn, "ALTER TABLE mislaid RENAME TO events")
    body_of(await caller.create("a", key="k"), 202)


async def test_a_failure_after_the_change_frees_the_key_and_keeps_the_change(
    lone: LoneApi, control_admin_dsn: str
) -> None:
    caller = await lone.caller()
    await execute_at(
        control_admin_dsn,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF new.response_status IS NOT NULL THEN RAISE 'no'; END IF; RETURN new; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    error_of(await caller.create("a", key="k"), 500, "internal_error")
    await execute_at(control_admin_dsn, "DROP TRIGGER refuse ON idempotency_keys")
    answer = body_of(await caller.create("a", key="k"), 202)
    assert "idempotency_replay" not in answer
    assert await databases() == 1


async def test_twenty_equal_requests_at_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    await lone.warm_up()
    answers = await asyncio.gather(*(caller.create("a", key="k") for _ in range(20)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    bodies = [json.loads(answer.text) for answer in answers if answer.status_code == 202]
    assert len([body for body in bodies if "idempotency_replay" not in body]) == 1
    assert len({body["data"]["uuid"] for body in bodies}) == 1
    for answer in answers:
        if answer.status_code == 409:
            error_of(answer, 409, "idempotency_key_in_progress")
    assert await databases() == 1


async def test_a_stored_answer_is_sealed(lone: LoneApi) -> None:
    caller = await lone.caller()
    password = data_of(await caller.create("a", key="k"), 202)["db_password"]
    (row,) = await fetch("SELECT response_sealed FROM idempotency_keys")
    assert password.encode() not in row["response_sealed"]
    assert b"database" not in row["response_sealed"]


async def test_a_stored_answer_of_another_key_does_not_open(lone: LoneApi) -> None:
    caller = await lone.caller()
    for key in ("k", "l"):
        body_of(await caller.create("a", key=key), 202)
    await fetch(
        "UPDATE idempotency_keys SET response_sealed ="
        " (SELECT response_sealed FROM idempotency_keys WHERE key = 'l') WHERE key = 'k'"
    )
    error_of(await caller.create("a", key="k"), 500, "internal_error")


async def test_a_settled_change_and_its_answer_are_one_transaction(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    key = str(uuid4())
    data_of(await caller.patch(f"/databases/{uuid}", {"name": "renamed"}, key=key))
    (change,) = await fetch("SELECT xmin::text FROM databases WHERE uuid = $1", UUID(uuid))
    (answer,) = await fetch("SELECT xmin::text FROM idempotency_keys WHERE key = $1 AND response_status = 200", key)
    assert change["xmin"] == answer["xmin"]
