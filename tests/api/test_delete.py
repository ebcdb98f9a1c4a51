"""`DELETE /databases/{uuid}`: access ends before the answer. Interface specification, section 4.9."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.meeting import meet
from tests.support.moves import events_of, make_active, make_revoked
from tests.support.waiting import LIMIT_SECONDS, until

DELETED = {
    "object",
    "uuid",
    "deleted",
    "cancelled_provision_jobs",
    "destroy_scheduled_at",
    "has_remote_resources",
}


async def test_an_active_database(caller: Caller) -> None:
    made = await caller.created()
    held = await asyncpg.connect(made["connection_string"])
    await held.execute("CREATE TABLE kept (n integer)")
    body = body_of(await caller.delete(f"/databases/{made['uuid']}"))
    assert body.keys() == {"message", "data", "operation", "request_id"}
    data = body["data"]
    assert data.keys() == DELETED
    assert (data["object"], data["uuid"], data["deleted"]) == ("database", made["uuid"], True)
    assert (data["cancelled_provision_jobs"], data["has_remote_resources"]) == (0, True)
    remaining = datetime.fromisoformat(data["destroy_scheduled_at"]) - datetime.now(UTC)
    assert timedelta(hours=23, minutes=58) < remaining <= timedelta(hours=24)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await held.execute("INSERT INTO kept VALUES (1)")
    with pytest.raises((asyncpg.InvalidAuthorizationSpecificationError, asyncpg.ObjectNotInPrerequisiteStateError)):
        await asyncpg.connect(made["connection_string"])


async def test_a_second_delete_finds_nothing(caller: Caller) -> None:
    made = await caller.created()
    path = f"/databases/{made['uuid']}"
    body_of(await caller.delete(path))
    error_of(await caller.delete(path), 404, "not_found")
    error_of(await caller.get(path), 404, "not_found")
    assert body_of(await caller.get("/databases"))["data"] == []


async def test_before_anything_was_made(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    assert data_of(await caller.delete(f"/databases/{uuid}")) == {
        "object": "database",
        "uuid": uuid,
        "deleted": True,
        "cancelled_provision_jobs": 1,
        "destroy_scheduled_at": None,
        "has_remote_resources": False,
    }
    assert await events_of(uuid) == ["database.provisioning_started", "database.deleted"]


async def test_the_answer_waits_until_access_has_ended(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid, later = [data_of(await caller.create(name), 202)["uuid"] for name in ("first", "later")]
    answers = []
    for one in (uuid, later):
        await make_active(one)
        answers.append(asyncio.create_task(caller.delete(f"/databases/{one}")))
        await until(lambda: _are_deleted(len(answers)))
    # The answer that may be given goes all its way, and so passes the one that began before it.
    await make_revoked(later)
    async with asyncio.timeout(LIMIT_SECONDS):
        await answers[1]
    assert not answers[0].done()
    await make_revoked(uuid)
    async with asyncio.timeout(LIMIT_SECONDS):
        assert data_of(await answers[0])["has_remote_resources"] is True


async def _are_deleted(count: int) -> bool:
    return len(await fetch("SELECT 1 FROM databases WHERE status = 'deleted'")) == count


async def test_deletes_at_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    answers = await meet(lone.control_dsn, "databases", (caller.delete(f"/databases/{uuid}") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 7
    assert (await events_of(uuid)).count("database.deleted") == 1
    rows = await fetch("SELECT 1 FROM workflow_starts WHERE workflow = 'DeleteDatabase'")
    assert len(rows) == 1


async def test_a_free_team_can_start_over(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    uuid = data_of(await caller.create(), 202)["uuid"]
    body_of(await caller.delete(f"/databases/{uuid}"))
    assert data_of(await caller.create(), 202)["uuid"] != uuid


async def test_the_workflow_gets_the_time_to_destroy(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    await make_active(uuid)
    await fetch("UPDATE databases SET remote_since = NULL")
    body_of(await caller.delete(f"/databases/{uuid}"))
    rows = await fetch("SELECT destroy_at FROM databases WHERE uuid = $1", UUID(uuid))
    asked = await fetch("SELECT input->>'destroy_at' AS at FROM workflow_starts WHERE workflow = 'DeleteDatabase'")
    assert datetime.fromisoformat(asked[0]["at"]) == rows[0]["destroy_at"]
