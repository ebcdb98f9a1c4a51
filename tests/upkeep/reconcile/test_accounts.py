"""Logins of rotations and users, held against their rows: put back, made anew, removed."""

from typing import Any
from uuid import UUID

from app.contracts.base import Engine
from app.core.temporal import connect
from app.engines.base import Access, Login
from app.store.session import fetch
from app.upkeep.reconcile.restarts import restart_lost_workflows
from tests.credentials.support import add_user, is_refused, rotate, run
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.waiting import until
from tests.upkeep.reconcile.conftest import Bench

CHANGE = {
    # As the login itself, not as the owner that it works as.
    Engine.POSTGRES: ("SET ROLE NONE; ALTER ROLE CURRENT_USER PASSWORD 'another'",),
    # In MariaDB's words, and in MySQL's.
    Engine.MYSQL: ("SET PASSWORD = PASSWORD('another')", "SET PASSWORD = 'another'"),
}


async def change_password(bench: Bench, connection_string: str) -> None:
    flavour = (await (await bench.adapter()).inspect_host()).flavour
    async with bench.session({"connection_string": connection_string}) as session:
        await session.execute(CHANGE[bench.host.engine][-1 if flavour == "mysql" else 0])


async def next_turn(made: dict[str, Any]) -> None:
    """As if every other database had been tried since."""
    await fetch("UPDATE databases SET login_tried_at = now() WHERE uuid <> $1", UUID(made["uuid"]))
    await fetch("UPDATE databases SET login_tried_at = NULL WHERE uuid = $1", UUID(made["uuid"]))


async def test_a_users_password_is_put_back(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    user = await add_user(caller, made, "app")
    await change_password(bench, user["connection_string"])
    assert await is_refused(user["connection_string"])
    await next_turn(made)
    ran = await bench.run()
    assert any(repair.startswith(f"Restored the password of database {made['uuid']}") for repair in ran.repairs)
    assert await run(user["connection_string"]) == 1
    assert await run(made["connection_string"]) == 1


async def test_both_passwords_are_put_back_during_an_overlap(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    rotated = await rotate(caller, made)
    await change_password(bench, rotated["connection_string"])
    # MariaDB replaces the older of two, the others the one that was used.
    assert await is_refused(rotated["connection_string"]) or await is_refused(made["connection_string"])
    await next_turn(made)
    await bench.run()
    assert await run(rotated["connection_string"]) == 1
    assert await run(made["connection_string"]) == 1
    data_of(await caller.post(f"/credential_rotations/{rotated['uuid']}/completions", {}))
    assert await is_refused(made["connection_string"])
    assert await run(rotated["connection_string"]) == 1


async def test_a_run_leaves_an_overlap_alone(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    rotated = await rotate(caller, made)
    await next_turn(made)
    await bench.run()
    assert await bench.details(made["uuid"]) == []
    assert await run(made["connection_string"]) == 1
    assert await run(rotated["connection_string"]) == 1


async def test_an_account_that_no_row_names_is_removed(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    user = await add_user(caller, made, "app")
    adapter = await bench.adapter()
    stray = Login(name=f"{made['db_name']}_u99", password="stray", access=Access.READ_WRITE, connections=1)
    await adapter.put_user(bench.tenant(made), stray)
    assert any(f"has accounts of no user: {stray.name}" in detail for detail in await bench.details(made["uuid"]))
    await next_turn(made)
    await bench.run()
    assert await bench.findings(made["uuid"]) == ["account_unknown"]
    assert (await adapter.open_sessions(bench.tenant(made))).keys() == {made["db_username"], user["db_username"]}
    assert await bench.details(made["uuid"]) == []


async def test_a_user_without_an_account_gets_one(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    user = await add_user(caller, made, "app")
    adapter = await bench.adapter()
    await adapter.remove_user(bench.tenant(made), user["db_username"])
    assert any("lacks accounts of users" in detail for detail in await bench.details(made["uuid"]))
    await next_turn(made)
    await bench.run()
    assert await run(user["connection_string"]) == 1
    assert await bench.details(made["uuid"]) == []


async def test_what_should_have_ended_is_reported_and_begun_anew(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    rotated = await rotate(caller, made)
    user = await add_user(caller, made, "app")
    # As if its workflow had been lost: nothing looks for what is on its way already.
    await fetch(
        "UPDATE credential_rotations SET status = 'retiring', changed_at = now() - interval '1 hour',"
        " retires_at = now() - interval '1 hour' WHERE uuid = $1",
        UUID(rotated["uuid"]),
    )
    await fetch(
        "UPDATE database_users SET status = 'removing', changed_at = now() - interval '1 hour' WHERE login_name = $1",
        user["db_username"],
    )
    told = await bench.details(made["uuid"])
    assert any("its previous credentials were to end" in detail for detail in told)
    assert any(f"its user {user['db_username']} is removing" in detail for detail in told)
    client = await connect(bench.running.temporal.address, bench.running.namespace)
    begun = [sentence for sentence in await restart_lost_workflows(client) if made["uuid"] in sentence]
    assert begun == [f"Began ApplyCredentials anew for database {made['uuid']}: nothing was at it any more."]

    async def ended() -> bool:
        query = "SELECT 1 FROM credential_rotations WHERE uuid = $1 AND status = 'completed'"
        gone = not await fetch("SELECT 1 FROM database_users WHERE login_name = $1", user["db_username"])
        return gone and bool(await fetch(query, UUID(rotated["uuid"])))

    await until(ended)
    assert await is_refused(made["connection_string"])
    assert await is_refused(user["connection_string"])
    assert await run(rotated["connection_string"]) == 1
