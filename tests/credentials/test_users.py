"""Users of a database, as a client asks for them, on real servers."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.core.errors import UserRotationNotInForce
from app.credentials.waiting import await_rotated_user
from app.store.notify import RowWatch
from app.store.session import fetch
from tests.credentials.stepped import Stepped
from tests.credentials.support import REFUSED, add_user, credentials, is_refused, rotate, run, session
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import LIMIT_SECONDS, until

USER = {
    "object",
    "database_uuid",
    "name",
    "db_username",
    "db_password",
    "connection_string",
    "access",
    "connection_limit",
    "expires_at",
    "status",
    "open_sessions",
    "created_at",
}


async def test_a_user_that_reads_and_one_that_writes(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    await run(made["connection_string"], "CREATE TABLE notes (n integer)")
    reader = await add_user(caller, made, "reporting", access="read_only")
    assert reader.keys() == USER
    assert (reader["object"], reader["status"], reader["access"]) == ("database_user", "active", "read_only")
    assert (reader["connection_limit"], reader["expires_at"]) == (2, None)
    assert reader["open_sessions"] in (0, None), "None where the host takes too long to say it"
    writer = await add_user(caller, made, "app", connection_limit=3)
    await run(writer["connection_string"], "INSERT INTO notes VALUES (1)")
    assert await run(reader["connection_string"], "SELECT count(*) FROM notes") == 1
    with pytest.raises((*REFUSED, asyncpg.ReadOnlySQLTransactionError)):
        await run(reader["connection_string"], "INSERT INTO notes VALUES (2)")
    await run(writer["connection_string"], "CREATE TABLE later (n integer)")
    assert await run(reader["connection_string"], "SELECT count(*) FROM later") == 0
    await run(made["connection_string"], "DROP TABLE later")

    path = f"/databases/{made['uuid']}/users"
    listed = body_of(await caller.get(path))
    assert [user["name"] for user in listed["data"]] == ["app", "reporting"]
    assert not any("db_password" in user for user in listed["data"])
    assert reader["db_password"] not in str(listed)
    assert [one["user"] for one in await credentials(caller, made)] == [None, "app", "reporting"]

    removed = data_of(await caller.delete(f"{path}/app"))
    assert removed == {
        "object": "database_user",
        "database_uuid": made["uuid"],
        "name": "app",
        "deleted": True,
    }
    assert await is_refused(writer["connection_string"])
    assert await run(reader["connection_string"], "SELECT count(*) FROM notes") == 1
    error_of(await caller.delete(f"{path}/app"), 404, "not_found")


async def test_a_users_password_is_replaced(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    await run(made["connection_string"], "CREATE TABLE notes (n integer)")
    user = await add_user(caller, made, "app", access="read_only")
    path, key = f"/databases/{made['uuid']}/users/app/rotations", str(uuid4())
    async with session(user["connection_string"]) as ask:
        rotated = data_of(await caller.post(path, {}, key=key))
        assert await ask("SELECT 1") == 1, "sessions go on unless they are to end"
    assert rotated.keys() == USER
    changed = {"db_password", "connection_string", "open_sessions"}
    assert all(rotated[name] == user[name] for name in USER - changed)
    assert await is_refused(user["connection_string"])
    assert await run(rotated["connection_string"], "SELECT count(*) FROM notes") == 0
    with pytest.raises((*REFUSED, asyncpg.ReadOnlySQLTransactionError)):
        await run(rotated["connection_string"], "INSERT INTO notes VALUES (2)")
    assert await run(made["connection_string"]) == 1
    assert data_of(await caller.post(path, {}, key=key)) == rotated, "a retry gets the same one"
    (_, login) = await credentials(caller, made)
    assert login["created_at"] > user["created_at"]
    assert rotated["db_password"] not in str(await caller.get(f"/databases/{made['uuid']}/users"))


async def test_a_users_password_is_replaced_once_at_a_time(stepped: Stepped) -> None:
    made = await stepped.created("postgres")
    path = f"/databases/{made['uuid']}/users"
    async with stepped.asked("POST", path, {"name": "app", "access": "read_only"}) as making:
        refused = await stepped.caller.post(f"{path}/app/rotations", {})
        assert error_of(refused, 409, "user_not_active")["details"] == {"name": "app", "status": "creating"}
        data_of(await stepped.answered(making, made), 201)
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        refused = await stepped.caller.post(f"{path}/app/rotations", {})
        assert error_of(refused, 409, "user_not_active")["details"] == {"name": "app", "status": "rotating"}
        first = data_of(await stepped.answered(waiting, made))
    async with stepped.asked("POST", f"{path}/app/rotations") as waiting:
        (row,) = await fetch("SELECT uuid, rotation FROM database_users WHERE login_name = $1", first["db_username"])
        second = data_of(await stepped.answered(waiting, made))
    assert first["db_password"] != second["db_password"]
    # The first one's answer may have been lost, and is asked for again.
    with pytest.raises(UserRotationNotInForce):
        await await_rotated_user(RowWatch(""), UUID(made["uuid"]), row["uuid"], row["rotation"], LIMIT_SECONDS)


async def test_open_sessions_are_counted_and_end_with_the_user(caller: Caller) -> None:
    made = await caller.created()
    user = await add_user(caller, made, "app")
    holding = asyncio.create_task(run(user["connection_string"], "SELECT pg_sleep(60)"))

    async def counted() -> bool:
        (one,) = data_of(await caller.get(f"/databases/{made['uuid']}/users"))
        return bool(one["open_sessions"] == 1)

    await until(counted)
    data_of(await caller.delete(f"/databases/{made['uuid']}/users/app"))
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await holding


async def test_one_whose_time_is_over_ends_by_itself(service: RunningService, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    user = await add_user(caller, made, "guest", expires_at=later)
    assert await run(user["connection_string"]) == 1
    async with store(service.control_dsn):
        await fetch("UPDATE database_users SET expires_at = now() WHERE login_name = $1", user["db_username"])
    path = f"/databases/{made['uuid']}/users"

    async def gone() -> bool:
        return not data_of(await caller.get(path))

    await until(gone)
    assert await is_refused(user["connection_string"])


async def test_a_name_is_taken_once(caller: Caller) -> None:
    made = await caller.created()
    path = f"/databases/{made['uuid']}/users"
    answers = await asyncio.gather(
        *(caller.post(path, {"name": "app", "access": "read_only", "connection_limit": 1}) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 4
    refused = error_of(await caller.post(path, {"name": "app", "access": "read_write"}), 409, "user_exists")
    assert refused["details"] == {"name": "app", "status": "active"}
    data_of(await caller.delete(f"{path}/app"))
    again = await add_user(caller, made, "app")
    first = next(data_of(answer, 201) for answer in answers if answer.status_code == 201)
    assert again["db_username"] != first["db_username"], "no account's name ever comes again"
    other = await caller.created("other")
    assert (await add_user(caller, other, "app"))["name"] == "app"


async def test_a_create_that_was_sent_twice(caller: Caller) -> None:
    made = await caller.created()
    path, key = f"/databases/{made['uuid']}/users", str(uuid4())
    body = {"name": "app", "access": "read_only"}
    first = body_of(await caller.post(path, body, key=key), 201)
    again = body_of(await caller.post(path, body, key=key), 201)
    assert again["idempotency_replay"] is True
    assert again["data"] == first["data"]
    key = str(uuid4())
    removed = body_of(await caller.delete(f"{path}/app", key=key))
    assert body_of(await caller.delete(f"{path}/app", key=key))["data"] == removed["data"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "App"}, "name"),
        ({"name": "1app"}, "name"),
        ({"name": "a" * 33}, "name"),
        ({"name": 'a"; DROP ROLE x'}, "name"),
        ({"name": "a\n"}, "name"),
        ({"access": "superuser"}, "access"),
        ({"connection_limit": 0}, "connection_limit"),
        ({"connection_limit": 10}, "connection_limit"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2120-01-01T00:00:00"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-14:00"}, "expires_at"),
        ({"password": "mine"}, "password"),
    ],
)
async def test_what_can_not_be_asked_for(
    stepped: Stepped, plain: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    body = {"name": "app", "access": "read_only", **change}
    assert field_of(await stepped.caller.post(f"/databases/{plain['uuid']}/users", body)) == field


@pytest.mark.parametrize("name", ["App", "nobody", "a'b", "%00"])
async def test_a_name_that_is_nobodys(stepped: Stepped, plain: dict[str, Any], name: str) -> None:
    error_of(await stepped.caller.delete(f"/databases/{plain['uuid']}/users/{name}"), 404, "not_found")


async def test_the_shares_of_all_never_exceed_the_limit(caller: Caller) -> None:
    made = await caller.created(connection_hard_limit=10)
    path = f"/databases/{made['uuid']}/users"
    shares = [(await add_user(caller, made, f"user{number}"))["connection_limit"] for number in range(4)]
    assert shares == [2, 2, 2, 2]
    answer = await caller.post(path, {"name": "more", "access": "read_only"})
    assert field_of(answer) == "connection_limit"
    assert (await add_user(caller, made, "last", connection_limit=1))["connection_limit"] == 1
    answer = await caller.post(path, {"name": "more", "access": "read_only", "connection_limit": 1})
    # The plan's five users come first.
    assert error_of(answer, 422, "plan_limit_exceeded")["details"] == {"field": "plan"}
    data_of(await caller.delete(f"{path}/user0"))
    quotas = f"/databases/{made['uuid']}/quotas"
    assert field_of(await caller.patch(quotas, {"connection_hard_limit": 7})) == "connection_hard_limit"
    assert data_of(await caller.patch(quotas, {"connection_hard_limit": 8}))["limits"]["connection_hard_limit"] == 8
    answer = await caller.post(path, {"name": "more", "access": "read_only", "connection_limit": 1})
    assert field_of(answer) == "connection_limit"


async def test_users_stay_when_the_password_is_rotated(caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    await run(made["connection_string"], "CREATE TABLE notes (n integer)")
    user = await add_user(caller, made, "app")
    rotated = await rotate(caller, made, overlap_seconds=0)
    await run(rotated["connection_string"], "CREATE TABLE more (n integer)")
    await run(user["connection_string"], "INSERT INTO more VALUES (1)")
    await run(user["connection_string"], "CREATE TABLE theirs (n integer)")
    await run(rotated["connection_string"], "INSERT INTO theirs VALUES (1)")
    await run(rotated["connection_string"], "DROP TABLE theirs")


async def test_what_is_not_the_callers(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    await add_user(caller, made, "app")
    other = await service.caller()
    path = f"/databases/{made['uuid']}/users"
    for answer in (
        await other.get(path),
        await other.post(path, {"name": "mine", "access": "read_only"}),
        await other.delete(f"{path}/app"),
    ):
        error_of(answer, 404, "not_found")


async def test_a_list_goes_page_by_page(caller: Caller) -> None:
    made = await caller.created()
    for name in ("one", "two", "three"):
        await add_user(caller, made, name, connection_limit=1)
    path = f"/databases/{made['uuid']}/users"
    page = body_of(await caller.get(path, params={"limit": 2}))
    assert ([user["name"] for user in page["data"]], page["has_more"]) == (["three", "two"], True)
    rest = body_of(await caller.get(path, params={"starting_after": "two"}))
    assert ([user["name"] for user in rest["data"]], rest["has_more"]) == (["one"], False)
    assert field_of(await caller.get(path, params={"starting_after": "nobody"})) == "starting_after"
