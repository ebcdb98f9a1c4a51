"""A worker that dies anywhere in a change of credentials leaves credentials that work, and the next one ends it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.credentials.ends import begin_due, find_due
from app.credentials.remaking import put_users
from app.store.session import fetch
from tests.credentials.stepped import Stepped
from tests.credentials.support import ENDED, is_refused, run, session
from tests.support.answers import data_of, error_of

AROUND_INTRODUCTION = pytest.mark.parametrize(
    ("method", "after"),
    [("add_credential", False), ("add_credential", True), ("log_in_as", False), ("log_in_as", True)],
)
AROUND = pytest.mark.parametrize("after", [False, True])


async def current(stepped: Stepped, made: dict[str, Any]) -> dict[str, Any]:
    """What a client sees now."""
    shown: dict[str, Any] = data_of(await stepped.caller.get(f"/databases/{made['uuid']}"))
    return shown


@AROUND_INTRODUCTION
async def test_before_the_new_ones_are_proven(stepped: Stepped, engine: str, method: str, after: bool) -> None:
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/credential_rotations"
    async with stepped.asked("POST", path, {"overlap_seconds": 3600}) as waiting:
        for _ in range(2):
            await stepped.die_in_step(made, method, after=after)
            assert (await current(stepped, made))["db_password"] == made["db_password"]
            assert await run(made["connection_string"]) == 1
        assert not waiting.done()
        rotated = data_of(await stepped.answered(waiting, made))
    assert await run(made["connection_string"]) == 1
    assert await run(rotated["connection_string"]) == 1
    assert (await current(stepped, made))["connection_string"] == rotated["connection_string"]


@AROUND
async def test_while_the_previous_ones_are_ended(stepped: Stepped, engine: str, after: bool) -> None:
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/credential_rotations"
    async with stepped.asked("POST", path, {"overlap_seconds": 0}) as waiting:
        for _ in range(2):
            await stepped.die_in_step(made, "retire_credential", after=after)
            assert await run((await current(stepped, made))["connection_string"]) == 1
        assert not waiting.done()
        rotated = data_of(await stepped.answered(waiting, made))
    assert rotated["status"] == "completed"
    assert await is_refused(made["connection_string"])
    assert await run(rotated["connection_string"]) == 1


@AROUND_INTRODUCTION
async def test_one_that_is_not_to_be_any_more(stepped: Stepped, engine: str, method: str, after: bool) -> None:
    """Paused while it was under way: the new credentials end, and those that were known stay."""
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/credential_rotations"
    async with stepped.asked("POST", path) as waiting:
        await stepped.die_in_step(made, method, after=after)
        await fetch("UPDATE databases SET status = 'paused', paused_reason = 'operator' WHERE uuid = $1", _uuid(made))
        await stepped.die_in_step(made, "retire_credential", after=after)
        answer = await stepped.answered(waiting, made)
    assert error_of(answer, 422, "database_not_active")["details"] == {"status": "paused"}
    await fetch("UPDATE databases SET status = 'active', paused_reason = NULL WHERE uuid = $1", _uuid(made))
    rows = await fetch(
        "SELECT status, password_sealed FROM credential_rotations WHERE database_id = $1", await _id(made)
    )
    assert [tuple(row) for row in rows] == [("cancelled", None)]
    assert (await current(stepped, made))["db_password"] == made["db_password"]
    assert await run(made["connection_string"]) == 1
    accounts = await (await stepped.bench.adapters.of_host((await stepped.record(made)).host_id)).open_sessions(
        stepped.tenant(made)
    )
    assert accounts.keys() == {made["db_username"]}


@pytest.mark.parametrize(
    ("method", "after"), [("put_user", False), ("put_user", True), ("log_in_as", False), ("log_in_as", True)]
)
async def test_while_a_user_is_made(stepped: Stepped, engine: str, method: str, after: bool) -> None:
    made = await stepped.created(engine)
    body = {"name": "app", "access": "read_write"}
    async with stepped.asked("POST", f"/databases/{made['uuid']}/users", body) as waiting:
        await stepped.die_in_step(made, method, after=after)
        user = data_of(await stepped.answered(waiting, made), 201)
    assert await run(user["connection_string"]) == 1
    assert await run(made["connection_string"]) == 1


@pytest.mark.parametrize(
    ("method", "after"),
    [("put_user", False), ("put_user", True), ("log_in_as", True), ("end_user_sessions", True)],
)
async def test_while_a_user_gets_a_new_password(stepped: Stepped, engine: str, method: str, after: bool) -> None:
    made, user, path = await _with_user(stepped, engine)
    async with session(user["connection_string"]) as ask:
        async with stepped.asked("POST", f"{path}/app/rotations", {"end_sessions": True}) as waiting:
            for _ in range(2):
                await stepped.die_in_step(made, method, after=after)
                assert data_of(await stepped.caller.get(path))[0]["status"] == "rotating"
            assert not waiting.done()
            rotated = data_of(await stepped.answered(waiting, made))
        with pytest.raises(ENDED):
            await ask("SELECT 1")
    assert rotated["status"] == "active"
    assert rotated["db_password"] != user["db_password"]
    assert await is_refused(user["connection_string"])
    assert await run(rotated["connection_string"]) == 1
    assert await run(made["connection_string"]) == 1


async def test_a_user_with_a_new_password_sees_no_more_than_before(stepped: Stepped) -> None:
    made, user, path = await _with_user(stepped, "postgres", "read_only")
    async with session(made["connection_string"]) as ask:
        await ask("CREATE TABLE hidden (n int)")
        await ask(f"REVOKE SELECT ON hidden FROM {user['db_username']}")
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        rotated = data_of(await stepped.answered(waiting, made))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await run(rotated["connection_string"], "SELECT n FROM hidden")


async def test_a_user_whose_password_changes_is_made_again_with_the_one_before(stepped: Stepped, engine: str) -> None:
    """As on another host, after its own was lost."""
    made, user, path = await _with_user(stepped, engine)
    record = await stepped.record(made)
    adapter = await stepped.bench.adapters.of_host(record.host_id)
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        await stepped.die_in_step(made, "put_user", after=False)
        await adapter.remove_user(stepped.tenant(made), user["db_username"])
        assert await is_refused(user["connection_string"])
        await put_users(stepped.bench.box, adapter, record)
        assert await run(user["connection_string"]) == 1
        rotated = data_of(await stepped.answered(waiting, made))
    assert await run(rotated["connection_string"]) == 1


@AROUND
async def test_a_user_keeps_its_password_where_nobody_may_enter(stepped: Stepped, engine: str, after: bool) -> None:
    made, user, path = await _with_user(stepped, engine)
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        await stepped.die_in_step(made, "put_user", after=after)
        await fetch("UPDATE databases SET status = 'paused', paused_reason = 'operator' WHERE uuid = $1", _uuid(made))
        await stepped.die_in_step(made, "put_user", after=after)
        error_of(await stepped.answered(waiting, made), 422, "database_not_active")
        assert await run(user["connection_string"]) == 1
    error_of(await stepped.caller.post(f"{path}/app/rotations", {}), 422, "database_not_active")
    await fetch("UPDATE databases SET status = 'active', paused_reason = NULL WHERE uuid = $1", _uuid(made))
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        rotated = data_of(await stepped.answered(waiting, made))
    assert await is_refused(user["connection_string"])
    assert await run(rotated["connection_string"]) == 1


async def test_a_user_that_is_removed_while_it_is_rotated(stepped: Stepped, engine: str) -> None:
    made, user, path = await _with_user(stepped, engine)
    async with (
        stepped.asked("POST", f"{path}/app/rotations") as waiting,
        stepped.asked("DELETE", f"{path}/app") as removing,
    ):
        assert data_of(await stepped.answered(removing, made))["deleted"] is True
        error_of(await waiting, 404, "not_found")
    assert await is_refused(user["connection_string"])
    assert await run(made["connection_string"]) == 1


@AROUND
async def test_while_a_user_is_removed(stepped: Stepped, engine: str, after: bool) -> None:
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/users"
    async with stepped.asked("POST", path, {"name": "app", "access": "read_write"}) as waiting:
        user = data_of(await stepped.answered(waiting, made), 201)
    async with stepped.asked("DELETE", f"{path}/app") as waiting:
        await stepped.die_in_step(made, "remove_user", after=after)
        assert data_of(await stepped.answered(waiting, made))["deleted"] is True
    assert await is_refused(user["connection_string"])
    assert data_of(await stepped.caller.get(path)) == []


async def test_what_became_due_while_nothing_ran(stepped: Stepped, engine: str) -> None:
    made = await stepped.created(engine)
    async with stepped.asked("POST", f"/databases/{made['uuid']}/credential_rotations") as waiting:
        rotated = data_of(await stepped.answered(waiting, made))
    soon = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    body = {"name": "guest", "access": "read_only", "expires_at": soon}
    async with stepped.asked("POST", f"/databases/{made['uuid']}/users", body) as waiting:
        guest = data_of(await stepped.answered(waiting, made), 201)
    assert _uuid(made) not in await find_due(100, without=[])
    await fetch("UPDATE credential_rotations SET retires_at = now() WHERE uuid = $1", UUID(rotated["uuid"]))
    await fetch("UPDATE database_users SET expires_at = now() WHERE database_id = $1", await _id(made))
    assert _uuid(made) in await find_due(100, without=[])
    assert await begin_due(_uuid(made))
    assert not await begin_due(_uuid(made)), "its workflow was asked for already"
    assert _uuid(made) not in await find_due(100, without=[])
    starts = await fetch(
        "SELECT 1 FROM workflow_starts WHERE workflow_id LIKE $1", f"apply-credentials/{made['uuid']}/%"
    )
    assert len(starts) == 3
    await stepped.step(made)
    assert await is_refused(made["connection_string"])
    assert await is_refused(guest["connection_string"])
    assert await run(rotated["connection_string"]) == 1


async def _with_user(
    stepped: Stepped, engine: str, access: str = "read_write"
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """A database, its user `app`, and the path of its users."""
    made = await stepped.created(engine)
    path = f"/databases/{made['uuid']}/users"
    async with stepped.asked("POST", path, {"name": "app", "access": access}) as waiting:
        return made, data_of(await stepped.answered(waiting, made), 201), path


def _uuid(made: dict[str, Any]) -> UUID:
    return UUID(made["uuid"])


async def _id(made: dict[str, Any]) -> int:
    rows = await fetch("SELECT id FROM databases WHERE uuid = $1", _uuid(made))
    found: int = rows[0]["id"]
    return found
