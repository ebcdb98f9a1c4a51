"""Each change of status is told exactly once, in the transaction of the change, and without a secret."""

import contextlib
import json
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from app.databases import records, states
from app.databases.records import NotWanted
from app.provisioning import lifecycle
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from tests.support.answers import data_of
from tests.support.in_process import LoneApi
from tests.support.moves import activate, events_of, make_active
from tests.support.store import execute_at


async def provisioning(lone: LoneApi) -> dict[str, Any]:
    caller = await lone.caller()
    data: dict[str, Any] = data_of(await caller.create(), 202)
    return data


async def test_a_whole_life(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    assert await events_of(uuid) == ["database.provisioning_started"]
    for _ in range(2):  # an activity may run again after its answer was lost
        await make_active(uuid)
    assert await events_of(uuid) == ["database.provisioning_started", "database.provisioned"]
    await fetch("UPDATE databases SET revoked_at = now()")
    await caller.delete(f"/databases/{uuid}")
    for _ in range(2):
        await states.record_revoked(UUID(uuid))
        await lifecycle.note_destroyed(DEFAULT_PLANS, UUID(uuid))
    assert (await events_of(uuid))[1:] == ["database.provisioned", "database.deleted", "database.destroyed"]


async def test_the_payload(lone: LoneApi) -> None:
    made = await provisioning(lone)
    await make_active(made["uuid"])
    rows = await fetch("SELECT uuid, type, team_id, payload::text AS payload, dispatched_at FROM events ORDER BY id")
    assert len({row["uuid"] for row in rows}) == 2
    for row, status in zip(rows, ("provisioning", "active"), strict=True):
        assert made["db_password"] not in row["payload"]
        assert (row["team_id"], row["dispatched_at"]) == (made["team_id"], None)
        payload = json.loads(row["payload"])
        assert payload.keys() == {"event", "timestamp", "data"}
        assert payload["event"] == row["type"]
        assert datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
        assert payload["data"].keys() == made.keys() - {"db_password", "tls_ca", "connections_limited_to"}
        assert (payload["data"]["uuid"], payload["data"]["status"]) == (made["uuid"], status)
        assert ":********@" in payload["data"]["connection_string"]


async def test_a_deletion_has_an_event_with_its_status(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    await caller.delete(f"/databases/{uuid}")
    (row,) = await fetch("SELECT payload->'data'->>'status' AS status FROM events WHERE type = 'database.deleted'")
    assert row["status"] == "deleted"


async def test_without_the_change_there_is_no_event(lone: LoneApi) -> None:
    uuid = (await provisioning(lone))["uuid"]
    await states.begin_remote(UUID(uuid))
    with contextlib.suppress(LookupError):
        async with transaction():
            await activate(UUID(uuid))
            raise LookupError
    assert await events_of(uuid) == ["database.provisioning_started"]
    (row,) = await fetch("SELECT status FROM databases")
    assert row["status"] == "provisioning"


async def test_without_the_event_there_is_no_change(lone: LoneApi, control_admin_dsn: str) -> None:
    uuid = (await provisioning(lone))["uuid"]
    await execute_at(control_admin_dsn, "ALTER TABLE events ADD CONSTRAINT none CHECK (type <> 'database.provisioned')")
    with pytest.raises(Exception, match="none"):
        await make_active(uuid)
    (row,) = await fetch("SELECT status, provisioned_at FROM databases")
    assert (row["status"], row["provisioned_at"]) == ("provisioning", None)


async def test_a_cancelled_provisioning_has_one_event_of_a_deletion(lone: LoneApi) -> None:
    uuid = (await provisioning(lone))["uuid"]
    for _ in range(2):
        await lifecycle.abandon_provisioning(DEFAULT_PLANS, UUID(uuid))
    assert await events_of(uuid) == ["database.provisioning_started", "database.deleted"]


async def test_what_is_deleted_stays_deleted(lone: LoneApi) -> None:
    uuid = (await provisioning(lone))["uuid"]
    await lifecycle.abandon_provisioning(DEFAULT_PLANS, UUID(uuid))
    with pytest.raises(NotWanted):
        await states.begin_remote(UUID(uuid))
    with pytest.raises(NotWanted):
        await activate(UUID(uuid))
    made = await records.find(UUID(uuid))
    assert made is not None
    with pytest.raises(NotWanted):
        await lifecycle.activate(DEFAULT_PLANS, replace(made, uuid=uuid4()))
    (row,) = await fetch("SELECT status, remote_since FROM databases")
    assert (row["status"], row["remote_since"]) == ("deleted", None)


async def test_only_a_deleted_database_is_recorded_as_destroyed(lone: LoneApi) -> None:
    made = await provisioning(lone)
    await states.record_destroyed(UUID(made["uuid"]))
    (row,) = await fetch("SELECT destroyed_at, password_sealed FROM databases")
    assert row["destroyed_at"] is None
    assert row["password_sealed"] is not None
    await lifecycle.abandon_provisioning(DEFAULT_PLANS, UUID(made["uuid"]))
    await states.record_destroyed(UUID(made["uuid"]))
    (row,) = await fetch("SELECT destroyed_at, password_sealed FROM databases")
    assert row["destroyed_at"] is not None
    assert row["password_sealed"] is None
