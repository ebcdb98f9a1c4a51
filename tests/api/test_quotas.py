"""`PATCH /databases/{uuid}/quotas`: overrides, their bounds, and the room on the host. Section 4.8."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from app.databases import limits
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import meet
from tests.support.moves import make_active
from tests.support.waiting import LIMIT_SECONDS, until

OVERRIDES: dict[str, Any] = {"storage_hard_limit_gb": 1.5, "connection_hard_limit": 20, "warning_threshold_pct": 90}


async def database(caller: Caller, **fields: Any) -> str:
    uuid: str = data_of(await caller.create(**fields), 202)["uuid"]
    return uuid


async def test_all_overrides_at_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await database(caller)
    answered = data_of(await caller.patch(f"/databases/{uuid}/quotas", OVERRIDES))
    assert (answered["quotas"], answered["limits"]) == (OVERRIDES, OVERRIDES)
    assert data_of(await caller.get(f"/databases/{uuid}"))["quotas"] == OVERRIDES


@pytest.mark.parametrize("field", OVERRIDES)
async def test_a_field_left_out_stays_and_null_clears_it(lone: LoneApi, field: str) -> None:
    caller = await lone.caller()
    uuid = await database(caller, **OVERRIDES)
    assert data_of(await caller.patch(f"/databases/{uuid}/quotas", {}))["quotas"] == OVERRIDES
    cleared = data_of(await caller.patch(f"/databases/{uuid}/quotas", {field: None}))
    assert cleared["quotas"] == OVERRIDES | {field: None}
    plan = {"storage_hard_limit_gb": 0.5, "connection_hard_limit": 10, "warning_threshold_pct": 80}
    assert cleared["limits"] == OVERRIDES | {field: plan[field]}


async def test_a_team_that_is_free_by_now_keeps_what_it_does_not_change(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await database(caller, **OVERRIDES)
    await fetch("UPDATE teams SET tier = 'free' WHERE id = (SELECT team_id FROM databases WHERE uuid = $1)", UUID(uuid))
    changed = data_of(await caller.patch(f"/databases/{uuid}/quotas", {"warning_threshold_pct": 70}))
    assert changed["quotas"] == OVERRIDES | {"warning_threshold_pct": 70}
    again = await caller.patch(f"/databases/{uuid}/quotas", {"storage_hard_limit_gb": 1.5})
    assert field_of(again, "plan_limit_exceeded") == "storage_hard_limit_gb"


async def test_changes_that_wait_for_the_engine_are_bounded(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await database(caller)
    behind = "UPDATE databases SET limits_revision = limits_applied + $2 WHERE uuid = $1"
    await fetch(behind, UUID(uuid), limits.MOST_PENDING)
    error = error_of(await caller.patch(f"/databases/{uuid}/quotas", OVERRIDES), 429, "too_many_under_way")
    assert error["details"] == {"resource": "changes_of_limits", "limit": limits.MOST_PENDING}
    await fetch(behind, UUID(uuid), limits.MOST_PENDING - 1)
    assert data_of(await caller.patch(f"/databases/{uuid}/quotas", OVERRIDES))["quotas"] == OVERRIDES


async def test_pauses_that_wait_for_the_engine_are_bounded(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await database(caller)
    await make_active(uuid)
    behind = "UPDATE databases SET access_revision = access_applied + $2 WHERE uuid = $1"
    await fetch(behind, UUID(uuid), limits.MOST_PENDING)
    error = error_of(await caller.post(f"/databases/{uuid}/pauses", None), 429, "too_many_under_way")
    assert error["details"] == {"resource": "changes_of_access", "limit": limits.MOST_PENDING}
    [row] = await fetch("SELECT status FROM databases WHERE uuid = $1", UUID(uuid))
    assert row["status"] == "active"


async def test_a_free_team_may_not_raise_a_limit_above_its_plans(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    uuid = await database(caller)
    for field, value in (("storage_hard_limit_gb", 0.51), ("connection_hard_limit", 11)):
        assert field_of(await caller.patch(f"/databases/{uuid}/quotas", {field: value}), "plan_limit_exceeded") == field
    lowered = {"storage_hard_limit_gb": 0.5, "connection_hard_limit": 1, "warning_threshold_pct": 100}
    assert data_of(await caller.patch(f"/databases/{uuid}/quotas", lowered))["quotas"] == lowered


async def test_more_connections_need_room_on_the_host(lone: LoneApi) -> None:
    await lone.add_host(region="eu-west-1", connection_capacity=30)
    caller = await lone.caller()
    first, second = [await database(caller, region="eu-west-1") for _ in range(2)]
    path = f"/databases/{first}/quotas"
    answer = await caller.patch(path, {"connection_hard_limit": 21})
    assert field_of(answer) == "connection_hard_limit"
    assert "20" in answer.json()["error"]["message"]
    assert data_of(await caller.patch(path, {"connection_hard_limit": 20}))["limits"]["connection_hard_limit"] == 20
    assert field_of(await caller.patch(f"/databases/{second}/quotas", {"connection_hard_limit": 11}))
    body_of(await caller.patch(path, {"connection_hard_limit": 5}))
    body_of(await caller.patch(f"/databases/{second}/quotas", {"connection_hard_limit": 25}))


async def test_changes_at_once_do_not_take_the_same_room(lone: LoneApi) -> None:
    await lone.add_host(region="eu-west-1", connection_capacity=30)
    caller = await lone.caller()
    made = [await database(caller, region="eu-west-1", connection_hard_limit=1) for _ in range(4)]
    change = {"connection_hard_limit": 20}
    answers = await meet(
        lone.control_dsn, "engine_hosts", (caller.patch(f"/databases/{uuid}/quotas", change) for uuid in made)
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 3


async def test_limits_that_an_engine_does_not_take_in_time_are_to_follow(control_dsn: str) -> None:
    async with lone_api(control_dsn, limits_timeout_seconds=0.1) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = await database(caller)
        await make_active(uuid)
        late = body_of(await caller.patch(f"/databases/{uuid}/quotas", {"connection_hard_limit": 3}))
    assert "follow" in late["message"]


async def test_an_active_database_is_waited_for(control_dsn: str) -> None:
    async with lone_api(control_dsn, limits_timeout_seconds=LIMIT_SECONDS) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = await database(caller)
        await make_active(uuid)
        asked = asyncio.create_task(caller.patch(f"/databases/{uuid}/quotas", {"connection_hard_limit": 4}))
        await until(lambda: fetch("SELECT 1 FROM databases WHERE limits_revision = 1"))
        await limits.record_limits_applied(UUID(uuid), 1)
        assert body_of(await asked)["message"] == "Quotas updated."


async def test_each_change_asks_for_a_workflow(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await database(caller)
    for limit in (3, 4):
        body_of(await caller.patch(f"/databases/{uuid}/quotas", {"connection_hard_limit": limit}))
    rows = await fetch("SELECT workflow_id FROM workflow_starts WHERE workflow = 'ApplyLimits' ORDER BY id")
    assert [row["workflow_id"] for row in rows] == [f"apply-limits/{uuid}/1", f"apply-limits/{uuid}/2"]
