"""Operations as their team reads them: pages, filters, one, and one that is waited for."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from app.core.ids import new_uuid
from app.store.notify import announce
from app.store.session import execute, fetch
from tests.operations.support import active, provisioning
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import activate
from tests.support.waiting import until


async def listed(caller: Caller, **params: Any) -> list[str]:
    return [one["type"] for one in data_of(await caller.get("/operations", params=params), 200)]


async def test_one(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    (line,) = data_of(await caller.get("/operations"), 200)
    one = data_of(await caller.get(f"/operations/{line['uuid']}"), 200)
    assert one == line
    assert one["object"] == "operation"
    assert (one["type"], one["status"], one["database_uuid"]) == ("create", "pending", str(database))
    assert one["requested_by"] == {"user_id": caller.user_id, "api_key_id": caller.key_id}
    assert one["request_id"].startswith("req_")
    assert [step["name"] for step in one["steps"]] == ["place", "make"]
    assert one["cancellable"] is True
    assert one["deadline_at"] > one["created_at"]
    assert (one["progress"], one["reason"], one["finished_at"]) == (None, None, None)


async def test_filters(lone: LoneApi) -> None:
    caller, database = await active(lone)
    other = data_of(await caller.create("other"), 202)["uuid"]
    assert await listed(caller) == ["create", "create"]
    assert await listed(caller, database_uuid=str(database), status="succeeded") == ["create"]
    assert await listed(caller, status="pending", type="create") == ["create"]
    assert await listed(caller, type="delete") == []
    assert await listed(caller, database_uuid=str(uuid4())) == []
    data_of(await caller.delete(f"/databases/{other}"), 200)
    assert await listed(caller, database_uuid=other) == ["delete", "create"]
    assert await listed(caller, database_uuid=other, status="cancelled") == ["create"]


async def test_what_is_no_filter(lone: LoneApi) -> None:
    caller = await lone.caller()
    for name in ("database_uuid", "status", "type", "starting_after", "limit", "state"):
        assert field_of(await caller.get("/operations", params={name: "x"})) == name


async def test_pages(lone: LoneApi) -> None:
    caller = await lone.caller()
    databases = [data_of(await caller.create(f"db-{number}"), 202)["uuid"] for number in range(5)]
    stranger, _ = await provisioning(lone)
    for narrowed in ({}, {"type": "create"}):
        seen: list[str] = []
        after: dict[str, Any] = {}
        while True:
            body = body_of(await caller.get("/operations", params={"limit": 2, **narrowed, **after}))
            seen += [one["database_uuid"] for one in body["data"]]
            if not body["has_more"]:
                break
            after = {"starting_after": body["data"][-1]["uuid"]}
        assert seen == databases[::-1]
    (foreign,) = data_of(await stranger.get("/operations"), 200)
    assert field_of(await caller.get("/operations", params={"starting_after": foreign["uuid"]})) == "starting_after"
    newest, oldest = await _of(caller, databases[4]), await _of(caller, databases[0])
    assert await listed(caller, database_uuid=databases[0], starting_after=newest) == ["create"]
    assert await listed(caller, database_uuid=databases[4], starting_after=oldest) == []


async def _of(caller: Caller, database: str) -> str:
    (one,) = data_of(await caller.get("/operations", params={"database_uuid": database}), 200)
    return str(one["uuid"])


async def test_those_of_all_teams_of_the_caller_are_in_one_order(lone: LoneApi) -> None:
    caller, first = await provisioning(lone)
    colleague, second = await provisioning(lone)
    third = data_of(await caller.create("third"), 202)["uuid"]
    await execute("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", caller.user_id, colleague.team_id)
    operations = data_of(await caller.get("/operations"), 200)
    assert [one["database_uuid"] for one in operations] == [third, str(second), str(first)]


async def test_they_are_the_teams_alone(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    stranger = await lone.caller()
    (mine,) = data_of(await caller.get("/operations"), 200)
    assert await listed(stranger) == []
    assert await listed(stranger, database_uuid=str(database)) == []
    for path in (mine["uuid"], str(new_uuid()), "1", mine["uuid"].replace("-", "")):
        error_of(await stranger.get(f"/operations/{path}"), 404, "not_found")
    blind = await lone.caller(scopes=("blueprints:read",))
    for path in ("/operations", f"/operations/{mine['uuid']}"):
        error_of(await blind.get(path), 403, "insufficient_scope")


async def test_waiting_ends_with_the_operation(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    (mine,) = data_of(await caller.get("/operations"), 200)
    path = f"/operations/{mine['uuid']}"
    waiting = asyncio.create_task(caller.get(path, params={"wait": "true", "timeout": "120"}))
    await until(listening)
    await announce(database)  # of something else
    await activate(database)
    ended = data_of(await waiting, 200)
    assert ended["status"] == "succeeded"
    assert data_of(await caller.get(path, params={"wait": "true"}), 200) == ended


async def listening() -> bool:
    return bool(
        await fetch("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
    )


async def test_waiting_ends_at_the_timeout(lone: LoneApi) -> None:
    caller, _ = await provisioning(lone)
    (mine,) = data_of(await caller.get("/operations"), 200)
    answer = await caller.get(f"/operations/{mine['uuid']}", params={"wait": "true", "timeout": "1"})
    assert data_of(answer, 200) == mine


@pytest.mark.parametrize("timeout", ["0", "121", "x"])
async def test_what_is_no_timeout(lone: LoneApi, timeout: str) -> None:
    caller = await lone.caller()
    answer = await caller.get(f"/operations/{uuid4()}", params={"wait": "true", "timeout": timeout})
    assert field_of(answer) == "timeout"
