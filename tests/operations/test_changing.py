"""Cancelling and retrying as clients do: with a key, once, and only what is theirs."""

from typing import Any
from uuid import UUID, uuid4

from app.databases import states
from app.databases.deletion import begin_destruction
from app.operations.kinds import OperationType
from app.provisioning import operator
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import execute, fetch
from tests.operations.support import active, code_of, fail_attempt, latest, provisioning, restored
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.in_process import LoneApi
from tests.support.moves import activate


async def path_of(database: UUID, *types: OperationType) -> str:
    return f"/operations/{(await latest(database, *types)).uuid}"


async def test_a_cancelled_create_leaves_nothing(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    path, key = await path_of(database), str(uuid4())
    assert data_of(await caller.get(path))["cancellable"] is True
    answer = await caller.post(f"{path}/cancellations", {}, key=key)
    cancelled = data_of(answer, 200)
    assert (cancelled["status"], cancelled["reason"]["code"]) == ("cancelled", "cancelled")
    assert cancelled["cancellable"] is False
    error_of(await caller.get(f"/databases/{database}"), 404, "not_found")
    assert data_of(await caller.get(path)) == cancelled
    replay = body_of(await caller.post(f"{path}/cancellations", {}, key=key))
    assert (replay["data"], replay["idempotency_replay"]) == (cancelled, True)
    refused = error_of(await caller.post(f"{path}/cancellations", {}), 409, "operation_not_cancellable")
    assert refused["details"] == {"status": "cancelled", "step": None}


async def test_a_cancelled_deletion_brings_the_database_back(lone: LoneApi) -> None:
    caller, database = await active(lone)
    data_of(await caller.delete(f"/databases/{database}"))
    path = await path_of(database, OperationType.DELETE)
    assert data_of(await caller.post(f"{path}/cancellations", {}))["status"] == "cancelled"
    assert data_of(await caller.get(f"/databases/{database}"))["uuid"] == str(database)


async def test_past_the_point_of_no_return_the_step_is_named(lone: LoneApi) -> None:
    caller, database = await active(lone)
    data_of(await caller.delete(f"/databases/{database}"))
    await states.record_revoked(database)
    await execute("UPDATE databases SET destroy_at = now() WHERE uuid = $1", database)
    await begin_destruction(database)
    path = await path_of(database, OperationType.DELETE)
    assert data_of(await caller.get(path))["cancellable"] is False
    refused = error_of(await caller.post(f"{path}/cancellations", {}), 409, "operation_not_cancellable")
    assert refused["details"]["step"] == "destroy"
    assert "destroy" in refused["message"]


async def test_what_an_operator_began_is_not_its_tenants_to_lift(lone: LoneApi) -> None:
    caller, database = await active(lone)
    await operator.pause(DEFAULT_PLANS, database)
    path = await path_of(database, OperationType.PAUSE)
    shown = data_of(await caller.get(path))
    assert (shown["cancellable"], shown["requested_by"]) == (False, None)
    error_of(await caller.post(f"{path}/cancellations", {}), 409, "operation_not_cancellable")


async def test_a_retry_is_for_now(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    path, key = await path_of(database), str(uuid4())
    assert data_of(await caller.post(f"{path}/retries", {}), 202)["status"] == "pending"
    assert await _woken() == 0, "nothing waits for a moment that could come sooner"
    await fail_attempt(database, "create_database")
    assert data_of(await caller.post(f"{path}/retries", {}, key=key), 202)["status"] == "waiting"
    assert await _woken() == 1
    assert body_of(await caller.post(f"{path}/retries", {}, key=key), 202)["idempotency_replay"] is True
    assert await _woken() == 1
    await activate(database)
    ended = error_of(await caller.post(f"{path}/retries", {}), 409, "operation_ended")
    assert ended["details"] == {"status": "succeeded"}


async def test_a_retry_is_for_what_a_restore_in_place_makes_first_too(lone: LoneApi) -> None:
    caller, database = await restored(lone)
    for attempts in range(1, 7):
        waiting = await fail_attempt(database, "prepare_restoration")
        assert (waiting.status.value, code_of(waiting)) == ("waiting", "host_unavailable")
        load = next(step for step in waiting.steps if step.name == "load")
        assert (load.status.value, load.attempts) == ("running", attempts)
    data_of(await caller.post(f"{await path_of(database)}/retries", {}), 202)
    assert await _woken() == 1


async def _woken() -> int:
    (row,) = await fetch("SELECT count(*) FROM workflow_starts WHERE signal IS NOT NULL")
    return int(row["count"])


async def test_both_are_for_those_who_may(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    path = await path_of(database)
    stranger = await lone.caller()
    reader = await lone.caller(scopes=("databases:read",))
    for change in ("cancellations", "retries"):
        error_of(await stranger.post(f"{path}/{change}", {}), 404, "not_found")
        error_of(await stranger.post(f"/operations/x/{change}", {}), 404, "not_found")
        error_of(await reader.post(f"{path}/{change}", {}), 403, "insufficient_scope")
        unkeyed: dict[str, Any] = {"content": "{}"}
        assert field_of(await caller.request("POST", f"{path}/{change}", **unkeyed), "missing_required_field") == (
            "Idempotency-Key"
        )
    assert data_of(await caller.get(path))["status"] == "pending"


async def test_a_key_is_for_one_of_them(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    path, key = await path_of(database), str(uuid4())
    data_of(await caller.post(f"{path}/retries", {}, key=key), 202)
    error_of(await caller.post(f"{path}/cancellations", {}, key=key), 409, "idempotency_key_conflict")
