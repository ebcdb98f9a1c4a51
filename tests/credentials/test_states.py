"""Rotations and users of databases that are not simply active."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pymysql
import pytest
from msgspec.json import encode
from msgspec.structs import replace

from app.credentials import rotations
from app.credentials.ends import begin_due, end_with_database
from app.databases import access, records
from app.engines.base import AdminAddress
from app.hosts.adapters import admin_place
from app.local.ports import LOOPBACK
from app.operations.kinds import OperationType
from app.operations.records import find_latest
from app.provisioning import operation_service, operator, service
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.plan_changes import follow_plans
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS, Plans
from app.store.session import fetch, transaction
from tests.credentials.stepped import Stepped
from tests.credentials.support import add_user, is_refused, rotate, run, session
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.ports import free_port
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

USER = {"name": "app", "access": "read_write"}


async def rotated(stepped: Stepped, made: dict[str, Any], **body: Any) -> dict[str, Any]:
    async with stepped.asked("POST", f"/databases/{made['uuid']}/credential_rotations", body) as waiting:
        data: dict[str, Any] = data_of(await stepped.answered(waiting, made))
        return data


async def with_user(stepped: Stepped, made: dict[str, Any], **body: Any) -> dict[str, Any]:
    async with stepped.asked("POST", f"/databases/{made['uuid']}/users", {**USER, **body}) as waiting:
        data: dict[str, Any] = data_of(await stepped.answered(waiting, made), 201)
        return data


async def pause(stepped: Stepped, made: dict[str, Any]) -> None:
    await operator.pause(DEFAULT_PLANS, UUID(made["uuid"]))
    await stepped.bench.follow(made)


async def resume(stepped: Stepped, made: dict[str, Any]) -> None:
    await operator.resume(UUID(made["uuid"]))
    await stepped.bench.follow(made)


@pytest.mark.parametrize("status", ["provisioning", "paused"])
async def test_nothing_begins_where_nothing_can_be_proven(stepped: Stepped, status: str) -> None:
    made = await stepped.created("postgres")
    await fetch("UPDATE databases SET status = $2 WHERE uuid = $1", UUID(made["uuid"]), status)
    path = f"/databases/{made['uuid']}"
    for answer in (
        await stepped.caller.post(f"{path}/credential_rotations", {}),
        await stepped.caller.post(f"{path}/users", USER),
    ):
        assert error_of(answer, 422, "database_not_active")["details"] == {"status": status}
    await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", UUID(made["uuid"]))


async def test_a_deleted_one_has_no_credentials(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    rotation = await rotated(stepped, made)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, UUID(made["uuid"]), timedelta(hours=1))
    path = f"/databases/{made['uuid']}"
    for answer in (
        await stepped.caller.post(f"{path}/credential_rotations", {}),
        await stepped.caller.post(f"{path}/users", USER),
        await stepped.caller.get(f"{path}/credentials"),
        await stepped.caller.get(f"/credential_rotations/{rotation['uuid']}"),
        await stepped.caller.post(f"/credential_rotations/{rotation['uuid']}/completions", {}),
    ):
        error_of(answer, 404, "not_found")


async def test_deleted_before_it_was_proven(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    async with stepped.asked("POST", f"/databases/{made['uuid']}/credential_rotations") as waiting:
        await stepped.die_in_step(made, "log_in_as", after=True)
        async with transaction():
            await service.delete_any(DEFAULT_PLANS, UUID(made["uuid"]), timedelta(hours=1))
        await stepped.bench.steps.revoke_access(UUID(made["uuid"]))
        error_of(await stepped.answered(waiting, made), 404, "not_found")
    await undelete(DEFAULT_PLANS, UUID(made["uuid"]))
    await stepped.bench.follow(made)
    assert await run(made["connection_string"]) == 1
    adapter = await stepped.bench.adapters.of_host((await stepped.record(made)).host_id)
    assert (await adapter.open_sessions(stepped.tenant(made))).keys() == {made["db_username"]}
    found = await find_latest(UUID(made["uuid"]), OperationType.ROTATE)
    assert found is not None
    assert found.status.value == "cancelled"


async def test_pauses_deletions_and_freezes_hold_for_every_login(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    await run(made["connection_string"], "CREATE TABLE notes (n integer)")
    rotation = await rotated(stepped, made)
    user = await with_user(stepped, made)
    logins = [one["connection_string"] for one in (made, rotation, user)]
    await pause(stepped, made)
    assert [await is_refused(login) for login in logins] == [True] * 3
    await resume(stepped, made)
    assert [await run(login) for login in logins] == [1] * 3
    async with transaction():
        record = await records.find_for_update(UUID(made["uuid"]))
        assert record is not None
        await access.freeze(record)
    await stepped.bench.follow(made)
    for login in logins:
        with pytest.raises((asyncpg.PostgresError, pymysql.err.Error)):
            await run(login, "INSERT INTO notes VALUES (1)")
        assert await run(login, "SELECT count(*) FROM notes") == 0
    frozen = await stepped.caller.get(f"/databases/{made['uuid']}/credentials")
    assert len(data_of(frozen)) == 3


async def test_a_frozen_one_is_rotated_and_stays_frozen(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    await run(made["connection_string"], "CREATE TABLE notes (n integer)")
    async with transaction():
        record = await records.find_for_update(UUID(made["uuid"]))
        assert record is not None
        await access.freeze(record)
    await stepped.bench.follow(made)
    rotation = await rotated(stepped, made, overlap_seconds=0)
    assert await run(rotation["connection_string"], "SELECT count(*) FROM notes") == 0
    with pytest.raises((asyncpg.PostgresError, pymysql.err.Error)):
        await run(rotation["connection_string"], "INSERT INTO notes VALUES (1)")


async def test_an_overlap_ends_while_paused(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    rotation = await rotated(stepped, made)
    await pause(stepped, made)
    await fetch("UPDATE credential_rotations SET retires_at = now() WHERE uuid = $1", UUID(rotation["uuid"]))
    assert await begin_due(UUID(made["uuid"]))
    await stepped.step(made)
    assert data_of(await stepped.caller.get(f"/credential_rotations/{rotation['uuid']}"))["status"] == "completed"
    assert await is_refused(rotation["connection_string"]), "it is paused"
    await resume(stepped, made)
    assert await is_refused(made["connection_string"])
    assert await run(rotation["connection_string"]) == 1


async def test_a_cancelled_rotation_leaves_nothing(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/credential_rotations"
    async with session(made["connection_string"]) as ask, stepped.asked("POST", path) as waiting:
        await stepped.die_in_step(made, "log_in_as", after=True)
        found = await find_latest(UUID(made["uuid"]), OperationType.ROTATE)
        assert found is not None
        async with transaction():
            await operation_service.cancel_any(DEFAULT_PLANS, CANCELLATIONS, found.uuid)
        answer = await stepped.answered(waiting, made)
        assert await ask("SELECT 1") == 1, "nobody ever knew another password than its own"
    error_of(answer, 409, "rotation_cancelled")
    assert await run(made["connection_string"]) == 1
    again = await rotated(stepped, made, overlap_seconds=0)
    assert await run(again["connection_string"]) == 1


async def test_a_proven_one_cannot_be_cancelled(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    rotation = await rotated(stepped, made)
    found = await find_latest(UUID(made["uuid"]), OperationType.ROTATE)
    assert found is not None
    assert found.status.value == "succeeded"
    answer = await stepped.caller.post(f"/operations/{found.uuid}/cancellations", {})
    error_of(answer, 409, "operation_not_cancellable")
    path = f"/credential_rotations/{rotation['uuid']}/completions"
    async with stepped.asked("POST", path) as waiting:
        await stepped.die_in_step(made, "retire_credential", after=False)
        assert data_of(await stepped.answered(waiting, made))["status"] == "completed"


async def test_an_overlap_that_has_not_begun_cannot_be_ended(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    async with stepped.asked("POST", f"/databases/{made['uuid']}/credential_rotations") as waiting:
        (rotation,) = data_of(await stepped.caller.get(f"/databases/{made['uuid']}/credential_rotations"))
        assert (rotation["status"], rotation["previous"]["retires_at"]) == ("pending", None)
        answer = await stepped.caller.post(f"/credential_rotations/{rotation['uuid']}/completions", {})
        assert error_of(answer, 409, "rotation_not_overlapping")["details"] == {"status": "pending"}
        data_of(await stepped.answered(waiting, made))


async def test_a_host_that_is_away_keeps_nobody_waiting(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    user = await with_user(stepped, made)
    assert user["open_sessions"] == 0
    record, port = await stepped.record(made), free_port()
    admin = AdminAddress(host=LOOPBACK, port=port, user="nobody", password="")
    (row,) = await fetch(
        "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
        " connection_capacity) VALUES ('postgres', '', '', 'bench-1', $1, $2, $3, 1, 1) RETURNING id",
        LOOPBACK,
        port,
        stepped.bench.box.seal(encode(admin).decode(), admin_place(record.engine, LOOPBACK, port)),
    )
    await fetch("UPDATE databases SET host_id = $2 WHERE id = $1", record.id, row["id"])
    try:
        listed = body_of(await stepped.caller.get(f"/databases/{made['uuid']}/credentials"))["data"]
        assert [one["open_sessions"] for one in listed] == [None, None]
    finally:
        await fetch("UPDATE databases SET host_id = $2 WHERE id = $1", record.id, record.host_id)
        await fetch("DELETE FROM engine_hosts WHERE id = $1", row["id"])


async def test_nothing_is_kept_of_what_is_destroyed(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    rotation = await rotated(stepped, made)
    await with_user(stepped, made)
    await fetch("UPDATE databases SET status = 'deleted', destroy_at = now() WHERE uuid = $1", UUID(made["uuid"]))
    async with transaction():
        await end_with_database(UUID(made["uuid"]))
    rows = await fetch(
        "SELECT status, password_sealed, previous_sealed FROM credential_rotations WHERE uuid = $1",
        UUID(rotation["uuid"]),
    )
    assert [tuple(row) for row in rows] == [("completed", None, None)]
    assert not await fetch("SELECT 1 FROM database_users WHERE database_id = $1", (await stepped.record(made)).id)


async def test_a_plan_that_shrinks_leaves_users_what_they_have(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    await with_user(stepped, made, connection_limit=6)
    await follow_plans(_with_free_connections(3))
    assert (await stepped.record(made)).connections == 7
    await follow_plans(DEFAULT_PLANS)
    assert (await stepped.record(made)).connections == 10


def _with_free_connections(connections: int) -> Plans:
    free = DEFAULT_PLANS.by_name["free"]
    smaller = replace(free, limits=replace(free.limits, connection_hard_limit=connections))
    return replace(DEFAULT_PLANS, by_name={**DEFAULT_PLANS.by_name, "free": smaller})


async def test_old_rows_are_swept(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    first = await rotated(stepped, made, overlap_seconds=0)
    second = await rotated(stepped, made)
    uuids = [UUID(one["uuid"]) for one in (first, second)]
    await fetch(
        "UPDATE credential_rotations SET completed_at = now() - interval '3 days' WHERE completed_at IS NOT NULL"
    )
    await rotations.delete_secrets(1000, timedelta(0))
    rows = await fetch("SELECT password_sealed FROM credential_rotations WHERE uuid = any($1) ORDER BY id", uuids)
    assert [row["password_sealed"] is None for row in rows] == [True, False]
    await rotations.delete_old(1000, timedelta(days=2))
    assert [
        row["uuid"] for row in await fetch("SELECT uuid FROM credential_rotations WHERE uuid = any($1)", uuids)
    ] == [uuids[1]]


async def test_an_answer_that_takes_too_long_is_learned_later(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    path, key = f"/databases/{made['uuid']}/credential_rotations", str(uuid4())
    async with service.another_api(REVOCATION_TIMEOUT_SECONDS="0.2") as (http, _):
        hasty = Caller(http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
        async with service.frozen("worker"):
            answer = await hasty.post(path, {}, key=key)
            error_of(answer, 503, "credentials_pending")
            assert answer.headers["Retry-After"]
            assert await run(made["connection_string"]) == 1
            error_of(await hasty.post(path, {}), 409, "rotation_in_progress")
    rotated = data_of(await caller.post(path, {}, key=key))
    assert await run(rotated["connection_string"]) == 1
    assert data_of(await caller.post(path, {}, key=key)) == rotated


async def test_a_worker_that_is_killed_again_and_again(service: RunningService, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    user = await add_user(caller, made, "app")
    for _ in range(2):
        before = data_of(await caller.get(f"/databases/{made['uuid']}"))["connection_string"]
        asked = asyncio.create_task(rotate(caller, made, overlap_seconds=0))
        async with store(service.control_dsn):
            await until(
                lambda: fetch(
                    "SELECT 1 FROM credential_rotations r JOIN databases d ON d.id = r.database_id"
                    " WHERE d.uuid = $1 AND r.created_at > now() - interval '30 seconds'",
                    UUID(made["uuid"]),
                )
            )
        await service.kill("worker")
        await service.start("worker")
        rotated = await asked
        assert rotated["connection_string"] != before
        assert await run(rotated["connection_string"]) == 1
        assert await is_refused(before)
    assert await run(user["connection_string"]) == 1
    history = json.dumps(data_of(await caller.get(f"/databases/{made['uuid']}/credential_rotations")))
    assert rotated["db_password"] not in history
