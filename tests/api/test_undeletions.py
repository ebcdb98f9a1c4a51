"""`POST /databases/{uuid}/undeletions` and `GET /deleted_databases`, on the API alone."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

from app.contracts.base import DatabaseStatus
from app.databases import access
from app.provisioning.lifecycle import note_destroyed
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.api.test_protection import FAR, ahead, made, status_of
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.moves import events_of, make_revoked
from tests.support.waiting import until


async def undeleted(caller: Caller, uuid: str, *, key: str | None = None) -> dict[str, Any]:
    """The answer to an undeletion whose engine follows."""
    asked = asyncio.create_task(caller.post(f"/databases/{uuid}/undeletions", None, key=key))
    where = "uuid = $1 AND status = 'paused' AND access_applied < access_revision"
    await until(lambda: fetch(f"SELECT 1 FROM databases WHERE {where}", UUID(uuid)))
    (row,) = await fetch("SELECT access_revision AS wanted FROM databases WHERE uuid = $1", UUID(uuid))
    await access.record_applied(DEFAULT_PLANS, UUID(uuid), row["wanted"])
    return body_of(await asked)


async def listed(caller: Caller, **query: Any) -> list[str]:
    return [item["uuid"] for item in body_of(await caller.get("/deleted_databases", params=query))["data"]]


async def test_the_answer_comes_when_the_engine_lets_its_tenant_in(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller)
    before = data_of(await caller.get(f"/databases/{uuid}"))
    body_of(await caller.delete(f"/databases/{uuid}"))
    body = await undeleted(caller, uuid)
    assert body.keys() == {"message", "data", "operation", "request_id"}
    assert body["data"]["status"] == "active"
    after = data_of(await caller.get(f"/databases/{uuid}"))
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    assert before["db_password"] not in str(body)
    assert (await events_of(uuid))[-3:] == ["database.deleted", "database.undeleted", "database.resumed"]


async def test_when_the_engine_takes_long_the_answer_says_that_access_follows(control_dsn: str) -> None:
    async with lone_api(control_dsn, revocation_timeout_seconds=0.1) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = await made(caller)
        data_of(await caller.delete(f"/databases/{uuid}"))
        body = body_of(await caller.post(f"/databases/{uuid}/undeletions", None))
    message = "Database undeleted; its access follows in a moment."
    assert (body["message"], body["data"]["status"]) == (message, "paused")


async def test_a_repeated_key_gets_its_old_answer_and_changes_nothing(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller)
    path, deletion, undeletion = f"/databases/{uuid}", str(uuid4()), str(uuid4())
    deleted = data_of(await caller.delete(path, key=deletion))
    back = (await undeleted(caller, uuid, key=undeletion))["data"]
    replay = body_of(await caller.delete(path, key=deletion))
    assert (replay["idempotency_replay"], replay["data"]) == (True, deleted)
    assert await status_of(uuid) == "active"
    data_of(await caller.delete(path))
    replay = body_of(await caller.post(f"{path}/undeletions", None, key=undeletion))
    assert (replay["idempotency_replay"], replay["data"]) == (True, back)
    assert await status_of(uuid) == "deleted"
    assert (await events_of(uuid)).count("database.undeleted") == 1


async def test_a_deletion_that_was_undone_before_its_answer_says_so(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller)
    await fetch("UPDATE databases SET remote_since = now()")
    path, key = f"/databases/{uuid}", str(uuid4())
    deleting = asyncio.create_task(caller.delete(path, key=key))
    await until(lambda: fetch("SELECT 1 FROM databases WHERE status = 'deleted'"))
    await undeleted(caller, uuid)
    error_of(await deleting, 409, "deletion_undone")
    error_of(await caller.delete(path, key=key), 409, "deletion_undone")
    assert await status_of(uuid) == "active"


async def test_what_cannot_be_undeleted(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    uuid = await made(caller)
    path = f"/databases/{uuid}/undeletions"
    key = str(uuid4())
    assert error_of(await caller.post(path, None, key=key), 409, "not_deleted")["details"] == {"status": "active"}
    error_of(await other.post(path, None), 404, "not_found")
    error_of(await caller.post(f"/databases/{uuid4()}/undeletions", None), 404, "not_found")
    data_of(await caller.delete(f"/databases/{uuid}"))
    error_of(await other.post(path, None), 404, "not_found")
    error_of(await caller.post(path, None, key=key), 409, "not_deleted")
    reader = await lone.caller(scopes=("databases:read",))
    error_of(await reader.post(path, None), 403, "insufficient_scope")
    error_of(await caller.request("POST", f"/databases/{uuid}/undeletions"), 422, "missing_required_field")
    await fetch("UPDATE databases SET destroy_at = now()")
    error_of(await caller.post(path, None), 404, "not_found")
    cancelled = data_of(await caller.create(), 202)["uuid"]
    data_of(await caller.delete(f"/databases/{cancelled}"))
    error_of(await caller.post(f"/databases/{cancelled}/undeletions", None), 404, "not_found")
    assert await status_of(uuid) == await status_of(cancelled) == "deleted"


async def test_it_counts_against_its_team_again(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    first = await made(caller)
    data_of(await caller.delete(f"/databases/{first}"))
    second = await made(caller)
    refused = await caller.post(f"/databases/{first}/undeletions", None)
    as_create = error_of(await caller.create(), 422, "plan_limit_exceeded")
    assert error_of(refused, 422, "plan_limit_exceeded") == as_create
    await fetch("UPDATE databases SET destroy_at = now() WHERE uuid = $1", UUID(first))
    error_of(await caller.post(f"/databases/{first}/undeletions", None), 404, "not_found")
    await fetch("UPDATE databases SET destroy_at = now() + interval '1 day' WHERE uuid = $1", UUID(first))
    data_of(await caller.delete(f"/databases/{second}"))
    assert (await undeleted(caller, first))["data"]["status"] == "active"


async def test_a_moment_ahead_stays_and_one_that_has_passed_goes(lone: LoneApi) -> None:
    caller = await lone.caller()
    moment = ahead(FAR)
    kept, past = await made(caller, expires_at=moment), await made(caller, expires_at=moment)
    await fetch("UPDATE databases SET expiry_announced_at = now()")
    for uuid in (kept, past):
        data_of(await caller.delete(f"/databases/{uuid}"))
    await fetch("UPDATE databases SET expires_at = now() WHERE uuid = $1", UUID(past))
    assert (await undeleted(caller, kept))["data"]["expires_at"] is not None
    assert (await undeleted(caller, past))["data"]["expires_at"] is None
    rows = await fetch("SELECT uuid, expiry_announced_at IS NOT NULL AS told FROM databases")
    assert {str(row["uuid"]): row["told"] for row in rows} == {kept: True, past: False}


async def test_protection_stays(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller)
    data_of(await caller.delete(f"/databases/{uuid}"))
    await fetch("UPDATE databases SET deletion_protection = true")
    assert (await undeleted(caller, uuid))["data"]["deletion_protection"] is True


async def test_the_list_has_what_can_come_back(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    uuids = [await made(caller, name=f"db-{number}") for number in range(4)]
    data_of(await other.delete(f"/databases/{await made(other)}"))
    data_of(await caller.delete(f"/databases/{data_of(await caller.create(), 202)['uuid']}"))
    order = [uuids[2], uuids[0], uuids[3]]
    for uuid in order:
        data_of(await caller.delete(f"/databases/{uuid}"))
    body = body_of(await caller.get("/deleted_databases"))
    assert (body["has_more"], [item["uuid"] for item in body["data"]]) == (False, order[::-1])
    item = body["data"][0]
    live = body_of(await caller.get("/databases"))["data"][0]
    assert item.keys() == live.keys() | {"deleted_at", "destroy_scheduled_at", "final_backup_uuid"}
    assert (item["name"], item["status"], item["final_backup_uuid"]) == ("db-3", "deleted", None)
    assert "********" in item["connection_string"]
    assert await listed(caller, limit=2) == order[:0:-1]
    assert await listed(caller, limit=2, starting_after=order[1]) == [order[0]]
    # A cursor holds although its database is no longer on the list.
    await undeleted(caller, order[1])
    assert await listed(caller, starting_after=order[1]) == [order[0]]
    await fetch("UPDATE databases SET destroy_at = now() WHERE uuid = $1", UUID(order[2]))
    assert await listed(caller) == [order[0]]
    await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", UUID(order[2]))
    assert await listed(caller, starting_after=order[2]) == [order[0]]
    for cursor in (str(uuid4()), uuids[1], (await listed(other))[0], "x"):
        refused = error_of(
            await caller.get("/deleted_databases", params={"starting_after": cursor}), 422, "invalid_field"
        )
        assert refused["details"] == {"field": "starting_after"}
    writer = await lone.caller(scopes=("databases:write",))
    error_of(await writer.get("/deleted_databases"), 403, "insufficient_scope")


async def test_an_event_shows_when_the_data_is_gone(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid, cancelled = await made(caller), data_of(await caller.create(), 202)["uuid"]
    await note_destroyed(DEFAULT_PLANS, UUID(uuid))
    assert "database.destroyed" not in await events_of(uuid), "it is not deleted"
    for one in (uuid, cancelled):
        data_of(await caller.delete(f"/databases/{one}"))
        for _ in range(2):
            await note_destroyed(DEFAULT_PLANS, UUID(one))
    assert (await events_of(uuid))[-2:] == ["database.deleted", "database.destroyed"]
    assert (await events_of(cancelled))[-1] == "database.deleted"
    (event,) = await fetch("SELECT payload->'data' AS data FROM events WHERE type = 'database.destroyed'")
    assert '"deleted"' in event["data"]


async def test_it_is_deleted_and_undeleted_many_times(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller)
    for _ in range(5):
        data_of(await caller.delete(f"/databases/{uuid}"))
        await make_revoked(uuid)
        await undeleted(caller, uuid)
    data_of(await caller.delete(f"/databases/{uuid}"))
    asked = "SELECT workflow_id FROM workflow_starts WHERE workflow = 'DeleteDatabase' AND signal IS NULL ORDER BY id"
    ids = [row["workflow_id"] for row in await fetch(asked)]
    assert ids == [f"delete-database/{uuid}"] + [f"delete-database/{uuid}/{number}" for number in range(2, 7)]
    assert await status_of(uuid) == DatabaseStatus.DELETED.value
