"""Every answer that accepts a change names its operation, and so does the replay."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from app.databases.limits import record_limits_applied
from app.databases.states import record_revoked
from app.store.session import execute
from tests.operations.support import active, provisioning
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.lone_pool import LonePool
from tests.support.moves import activate


@pytest_asyncio.fixture
async def hasty(control_dsn: str) -> AsyncIterator[LoneApi]:
    """Its answers don't wait long for engines that there are not."""
    async with lone_api(control_dsn, revocation_timeout_seconds=0.1) as api:
        await api.add_host()
        yield api


async def named(caller: Caller, answer: httpx.Response, type: str) -> str:
    """The operation that the answer names, after checking that it is one of this type, and its status then."""
    operation = answer.json()["operation"]
    assert operation.keys() == {"uuid", "status"}
    known = data_of(await caller.get(f"/operations/{operation['uuid']}"), 200)
    assert (known["type"], known["status"]) == (type, operation["status"])
    return str(operation["status"])


def same(answer: httpx.Response, replay: httpx.Response) -> bool:
    first, again = answer.json(), replay.json()
    assert again.pop("idempotency_replay") is True
    assert first.pop("request_id") != again.pop("request_id")
    return replay.status_code == answer.status_code and first == again


async def test_a_create_that_goes_on(lone: LoneApi) -> None:
    caller, key = await lone.caller(), str(uuid4())
    answer = await caller.create(key=key)
    assert answer.status_code == 202
    assert await named(caller, answer, "create") == "pending"
    assert answer.json()["provisioning"]["poll_url"] == f"/api/v1/databases/{answer.json()['data']['uuid']}"
    await activate(UUID(answer.json()["data"]["uuid"]))
    assert same(answer, await caller.create(key=key))


@pytest.mark.parametrize("tier", ["pro", "free"])
async def test_a_create_from_the_pool(pool: LonePool, tier: str) -> None:
    """In one statement, and in the request's transaction."""
    await pool.add_members(2, await pool.api.add_host())
    caller, key = await pool.api.caller(tier=tier), str(uuid4())
    answer = await caller.create(key=key)
    assert answer.status_code == 201
    assert await named(caller, answer, "create") == "succeeded"
    assert same(answer, await caller.create(key=key))


async def test_a_deletion(hasty: LoneApi) -> None:
    caller, database = await active(hasty)
    await execute("UPDATE databases SET remote_since = now() WHERE uuid = $1", database)
    key = str(uuid4())
    error = await caller.delete(f"/databases/{database}", key=key)
    assert error.status_code == 503
    await record_revoked(database)
    answer = await caller.delete(f"/databases/{database}", key=key)
    assert body_of(answer)["data"]["deleted"] is True
    assert await named(caller, answer, "delete") == "waiting"
    assert same(answer, await caller.delete(f"/databases/{database}", key=key))


async def test_changes_of_quotas_name_each_its_own(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    first, second = [
        body_of(await caller.patch(f"/databases/{database}/quotas", {"connection_hard_limit": limit}))["operation"]
        for limit in (5, 6)
    ]
    assert first["uuid"] != second["uuid"]
    listed = data_of(await caller.get("/operations", params={"type": "limits"}), 200)
    assert [one["uuid"] for one in listed] == [second["uuid"], first["uuid"]]


async def test_a_change_of_quotas_that_was_gone_on_with_names_its_own(lone: LoneApi) -> None:
    """The process died before it answered, and another change came in between."""
    caller, database = await provisioning(lone)
    path, key = f"/databases/{database}/quotas", str(uuid4())
    answer = await caller.patch(path, {"connection_hard_limit": 5}, key=key)
    await caller.patch(path, {"connection_hard_limit": 6})
    await record_limits_applied(database, 2)
    await execute("UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL WHERE key = $1", key)
    again = body_of(await caller.patch(path, {"connection_hard_limit": 5}, key=key))
    assert again["operation"]["uuid"] == body_of(answer)["operation"]["uuid"]


async def test_an_undeletion(hasty: LoneApi) -> None:
    caller, database = await active(hasty)
    data_of(await caller.delete(f"/databases/{database}"), 200)
    answer = await caller.post(f"/databases/{database}/undeletions", {})
    operation = answer.json()["operation"]
    assert data_of(await caller.get(f"/operations/{operation['uuid']}"), 200)["type"] == "undelete"


async def test_an_application_of_a_blueprint(lone: LoneApi) -> None:
    caller, database = await active(lone)
    script: dict[str, Any] = {"name": "notes", "sql_content": "CREATE TABLE notes (id integer)"}
    blueprint = data_of(await caller.post("/blueprints", script), 201)["uuid"]
    path, body, key = f"/databases/{database}/blueprint_applications", {"blueprint_uuid": blueprint}, str(uuid4())
    answers = [await caller.post(path, {**body, "wait": False}, key=key if not number else None) for number in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert await named(caller, answers[0], "apply_blueprint") == "pending"
    assert answers[0].json()["operation"]["uuid"] != answers[1].json()["operation"]["uuid"]
    assert same(answers[0], await caller.post(path, {**body, "wait": False}, key=key))


async def test_a_change_that_is_older_than_operations(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    path, key = f"/databases/{database}/quotas", str(uuid4())
    await caller.patch(path, {"connection_hard_limit": 5}, key=key)
    await execute("DELETE FROM operations")
    await execute(
        "UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL, resource = $2 WHERE key = $1",
        key,
        str(database),
    )
    again = body_of(await caller.patch(path, {"connection_hard_limit": 5}, key=key))
    assert "operation" not in again
