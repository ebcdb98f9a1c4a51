"""`headwater databases rotate` and what belongs to it, beside the running service."""

import pytest

from tests.cli.command import Headwater
from tests.credentials.support import add_user, is_refused, run
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.service import RunningService


@pytest.fixture
def command(service: RunningService) -> Headwater:
    return Headwater(
        {
            "CONTROL_DSN": service.control_dsn,
            "TEMPORAL_ADDRESS": service.temporal.address,
            "SECRET_KEYS": service.secret_keys,
            "HOME": str(service.folder),
        }
    )


async def test_an_operator_rotates_and_ends_the_overlap(command: Headwater, caller: Caller) -> None:
    made = await caller.created()
    rotated = await command.json("databases", "rotate", made["uuid"], "--overlap", "3600")
    assert (rotated["status"], "db_password" in rotated) == ("overlapping", False)
    shown = data_of(await caller.get(f"/databases/{made['uuid']}"))
    assert shown["db_password"] not in str(rotated)
    assert await run(shown["connection_string"]) == 1
    listed = await command.json("databases", "credentials", made["uuid"])
    assert [one["status"] for one in listed] == ["active", "retiring"]
    assert "under way" in await command.refusal("databases", "rotate", made["uuid"])
    assert (await command.json("databases", "complete-rotation", made["uuid"]))["status"] == "completed"
    assert await is_refused(made["connection_string"])
    assert "No such rotation under way" in await command.refusal("databases", "complete-rotation", made["uuid"])


async def test_an_operator_sees_rotates_and_removes_users(command: Headwater, caller: Caller) -> None:
    made = await caller.created()
    user = await add_user(caller, made, "app")
    (listed,) = await command.json("databases", "users", made["uuid"])
    assert (listed["name"], "db_password" in listed) == ("app", False)
    renewed = await command.json("databases", "rotate-user", made["uuid"], "app", "--end-sessions")
    assert (renewed["name"], renewed["status"]) == ("app", "active")
    assert await is_refused(user["connection_string"])
    assert await run(renewed["connection_string"]) == 1
    (event,) = data_of(await caller.get("/audit_events", params={"action": "database_user.rotate"}))
    assert (event["actor"]["kind"], event["subject"]["id"]) == ("operator", made["uuid"])
    assert renewed["db_password"] not in str(event)
    assert await command.json("databases", "remove-user", made["uuid"], "app") == []
    assert await is_refused(renewed["connection_string"])
    for refused in ("rotate-user", "remove-user"):
        assert "No such user" in await command.refusal("databases", refused, made["uuid"], "app")
