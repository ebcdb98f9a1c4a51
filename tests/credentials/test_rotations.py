"""Rotations, as a client asks for them, on real servers."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.store.session import fetch
from tests.credentials.stepped import Stepped
from tests.credentials.support import (
    credentials,
    is_refused,
    payloads,
    rotate,
    rotation_now,
    run,
)
from tests.e2e.hosts import login
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

ROTATION = {
    "object",
    "uuid",
    "database_uuid",
    "status",
    "db_username",
    "db_password",
    "connection_string",
    "previous",
    "created_at",
    "completed_at",
}


async def test_both_work_during_the_overlap_and_the_new_ones_after(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    assert await login(made["connection_string"]) == 1
    rotated = await rotate(caller, made, overlap_seconds=3600)
    assert rotated.keys() == ROTATION
    assert (rotated["object"], rotated["status"], rotated["completed_at"]) == (
        "credential_rotation",
        "overlapping",
        None,
    )
    assert rotated["db_password"] != made["db_password"]
    assert (rotated["db_username"] == made["db_username"]) == (engine == "mysql")
    assert rotated["previous"]["db_username"] == made["db_username"]
    left = datetime.fromisoformat(rotated["previous"]["retires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=55) < left <= timedelta(hours=1)
    assert await login(made["connection_string"]) == 2
    assert await login(rotated["connection_string"]) == 3

    shown = data_of(await caller.get(f"/databases/{made['uuid']}"))
    names = ("db_username", "db_password", "connection_string")
    assert [shown[name] for name in names] == [rotated[name] for name in names]

    ended = data_of(await caller.post(f"/credential_rotations/{rotated['uuid']}/completions", {}))
    assert ended["status"] == "completed"
    assert ended["completed_at"]
    assert "db_password" not in ended
    assert await is_refused(made["connection_string"])
    assert await login(rotated["connection_string"]) == 4


async def test_without_an_overlap_the_previous_are_refused_at_once(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    rotated = await rotate(caller, made, overlap_seconds=0)
    assert rotated["status"] == "completed"
    assert await is_refused(made["connection_string"])
    again = await rotate(caller, made, overlap_seconds=0)
    assert await is_refused(rotated["connection_string"])
    assert await run(again["connection_string"]) == 1


async def test_an_overlap_ends_by_itself(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    rotated = await rotate(caller, made, overlap_seconds=1)

    async def over() -> bool:
        return bool((await rotation_now(caller, rotated))["status"] == "completed")

    await until(over)
    assert await is_refused(made["connection_string"])
    assert await run(rotated["connection_string"]) == 1


async def test_one_that_was_asked_for_twice_happens_once(caller: Caller) -> None:
    made = await caller.created()
    key = str(uuid4())
    first = await rotate(caller, made, key=key)
    path = f"/databases/{made['uuid']}/credential_rotations"
    again = body_of(await caller.post(path, {}, key=key))
    assert again["idempotency_replay"] is True
    assert again["data"] == first
    assert len(body_of(await caller.get(path))["data"]) == 1


async def test_a_second_one_during_an_overlap(caller: Caller) -> None:
    made = await caller.created()
    rotated = await rotate(caller, made)
    left = datetime.fromisoformat(rotated["previous"]["retires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23, minutes=55) < left <= timedelta(days=1)
    answer = await caller.post(f"/databases/{made['uuid']}/credential_rotations", {})
    assert error_of(answer, 409, "rotation_in_progress")["details"] == {"rotation_uuid": rotated["uuid"]}
    data_of(await caller.post(f"/credential_rotations/{rotated['uuid']}/completions", {}))
    again = await rotate(caller, made)
    assert again["previous"]["db_username"] == rotated["db_username"]


async def test_many_at_once_make_one(caller: Caller) -> None:
    made = await caller.created()
    path = f"/databases/{made['uuid']}/credential_rotations"
    answers = await asyncio.gather(*(caller.post(path, {}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    (rotated,) = [data_of(answer) for answer in answers if answer.status_code == 200]
    assert await run(rotated["connection_string"]) == 1


async def test_ending_one_twice(caller: Caller) -> None:
    made = await caller.created()
    rotated = await rotate(caller, made)
    path = f"/credential_rotations/{rotated['uuid']}/completions"
    first = data_of(await caller.post(path, {}))
    assert data_of(await caller.post(path, {})) == first


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"overlap_seconds": -1}, "overlap_seconds"),
        ({"overlap_seconds": 604_801}, "overlap_seconds"),
        ({"overlap_seconds": None}, "overlap_seconds"),
        ({"end_sessions": "yes"}, "end_sessions"),
        ({"overlap": 1}, "overlap"),
    ],
)
async def test_what_can_not_be_asked_for(stepped: Stepped, body: dict[str, Any], field: str) -> None:
    assert field_of(await stepped.caller.post(f"/databases/{uuid4()}/credential_rotations", body)) == field


async def test_what_is_not_the_callers(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    rotated = await rotate(caller, made)
    other = await service.caller()
    base = f"/databases/{made['uuid']}"
    for answer in (
        await other.post(f"{base}/credential_rotations", {}),
        await other.get(f"{base}/credential_rotations"),
        await other.get(f"{base}/credentials"),
        await other.get(f"/credential_rotations/{rotated['uuid']}"),
        await other.post(f"/credential_rotations/{rotated['uuid']}/completions", {}),
        await caller.get(f"/credential_rotations/{uuid4()}"),
        await caller.get("/credential_rotations/no-uuid"),
    ):
        error_of(answer, 404, "not_found")
    assert await run(made["connection_string"]) == 1


async def test_a_list_shows_no_password(caller: Caller) -> None:
    made = await caller.created()
    rotations = [await rotate(caller, made, overlap_seconds=0) for _ in range(3)]
    path = f"/databases/{made['uuid']}/credential_rotations"
    page = body_of(await caller.get(path, params={"limit": 2}))
    assert [one["uuid"] for one in page["data"]] == [rotations[2]["uuid"], rotations[1]["uuid"]]
    assert page["has_more"] is True
    rest = body_of(await caller.get(path, params={"starting_after": page["data"][-1]["uuid"]}))
    assert [one["uuid"] for one in rest["data"]] == [rotations[0]["uuid"]]
    shown = json.dumps([page, rest, (await caller.get(f"/credential_rotations/{rotations[2]['uuid']}")).json()])
    assert not any(one["db_password"] in shown for one in (made, *rotations))
    assert field_of(await caller.get(path, params={"starting_after": str(uuid4())})) == "starting_after"


async def test_every_login_is_listed(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    rotated = await rotate(caller, made)

    async def counted() -> list[dict[str, Any]]:
        """Every login; empty while the host doesn't say in time how many sessions they have."""
        listed = await credentials(caller, made)
        return listed if engine == "mysql" or listed[1]["open_sessions"] is not None else []

    own, previous = await until(counted)
    assert (own["db_username"], own["status"], own["retires_at"]) == (rotated["db_username"], "active", None)
    assert (previous["db_username"], previous["status"]) == (made["db_username"], "retiring")
    assert previous["retires_at"] == rotated["previous"]["retires_at"]
    assert previous["open_sessions"] == (None if engine == "mysql" else 0)
    data_of(await caller.post(f"/credential_rotations/{rotated['uuid']}/completions", {}))
    own, previous = await credentials(caller, made)
    assert (own["status"], previous["status"]) == ("active", "revoked")


async def test_the_event_carries_no_secret(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    rotated = await rotate(caller, made)
    async with store(service.control_dsn):
        events = await payloads(made)
        starts = await fetch("SELECT input::text, summary FROM workflow_starts")
    sent = [payload for kind, payload in events if kind == "database.credentials_rotated"]
    assert len(sent) == 1
    assert json.loads(sent[0])["data"]["db_username"] == rotated["db_username"]
    assert not any(rotated["db_password"] in text for text in (*sent, *(str(row) for row in starts)))


async def test_rows_keep_no_password_that_is_not_needed(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    rotated = await rotate(caller, made, overlap_seconds=0)
    async with store(service.control_dsn):
        (row,) = await fetch(
            "SELECT previous_sealed, password_sealed FROM credential_rotations WHERE uuid = $1", UUID(rotated["uuid"])
        )
    assert row["previous_sealed"] is None
    assert row["password_sealed"] is not None, "a retry of the request is answered from it"
