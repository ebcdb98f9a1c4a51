"""A tenant that changes its own password: the recorded one comes back, and its team is told."""

from typing import Any
from uuid import UUID

import pytest

from app.contracts.base import Engine
from app.store.session import fetch
from app.upkeep.reconcile.logins import active, due, try_logins
from app.upkeep.reconcile.snapshot import take_snapshot
from tests.applications.support import applied, tables
from tests.e2e.hosts import login
from tests.queries.conftest import Asked
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.model_server import sql
from tests.support.waiting import until
from tests.upkeep.reconcile.conftest import Bench

CHANGE = {
    Engine.POSTGRES: ("ALTER ROLE CURRENT_USER PASSWORD 'another'",),
    # In MariaDB's words, and in MySQL's.
    Engine.MYSQL: ("SET PASSWORD = PASSWORD('another')", "SET PASSWORD = 'another'"),
}


async def _change_password(bench: Bench, made: dict[str, str]) -> None:
    flavour = (await (await bench.adapter()).inspect_host()).flavour
    await bench.as_tenant(made, CHANGE[bench.host.engine][-1 if flavour == "mysql" else 0])


async def _told(made: dict[str, str]) -> int:
    rows = await fetch(
        "SELECT count(*) AS n FROM events e JOIN databases d ON d.id = e.database_id"
        " WHERE d.uuid = $1 AND e.type = 'database.password_restored'",
        UUID(made["uuid"]),
    )
    count: int = rows[0]["n"]
    return count


async def _tried_last(made: dict[str, str]) -> None:
    """As if every other database had had its turn since."""
    await fetch("UPDATE databases SET login_tried_at = now() WHERE uuid <> $1", UUID(made["uuid"]))
    await fetch("UPDATE databases SET login_tried_at = NULL WHERE uuid = $1", UUID(made["uuid"]))


async def test_a_run_puts_the_recorded_password_back(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await _change_password(bench, made)
    await _tried_last(made)
    ran = await bench.run()
    [repair] = [repair for repair in ran.repairs if made["uuid"] in repair]
    assert repair.startswith("Restored the password of database ")
    assert await bench.findings(made["uuid"]) == ["active_unreachable"]
    assert await login(made["connection_string"]) == 1
    assert await _told(made) == 1
    await _tried_last(made)
    ran = await bench.run()
    assert not any(made["uuid"] in repair for repair in ran.repairs)
    assert await bench.findings(made["uuid"]) == []
    assert await bench.details(made["uuid"]) == []
    assert await _told(made) == 1


async def test_a_password_that_can_not_be_opened_is_a_finding(bench: Bench, caller: Caller) -> None:
    """Its key is not configured any more, or its row was damaged. The others of the host are looked at all the same."""
    made, other = [await caller.created(db_type=bench.host.engine) for _ in range(2)]
    password = "SELECT password_sealed FROM databases WHERE uuid = $1"
    [kept] = await fetch(password, UUID(made["uuid"]))
    [moved] = await fetch(password, UUID(other["uuid"]))
    put = "UPDATE databases SET password_sealed = $2 WHERE uuid = $1"
    await fetch(put, UUID(made["uuid"]), moved["password_sealed"])
    try:
        await _tried_last(made)
        await bench.run()
        assert await bench.findings(made["uuid"]) == ["active_unreachable"]
    finally:
        await fetch(put, UUID(made["uuid"]), kept["password_sealed"])


async def test_a_finding_stays_until_its_database_is_tried_again(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine, connection_hard_limit=2)
    put = "UPDATE databases SET password_sealed = $2 WHERE uuid = $1"
    [kept] = await fetch("SELECT password_sealed FROM databases WHERE uuid = $1", UUID(made["uuid"]))
    await fetch(put, UUID(made["uuid"]), b"not to be opened")
    try:
        await _tried_last(made)
        await bench.run()
        [found] = await _found(made)
        assert found["rule"] == "active_unreachable"
        # With one of two open, the run leaves the last one to its tenant.
        async with bench.session(made):
            await bench.run()
            assert [one["first_seen_at"] for one in await _found(made)] == [found["first_seen_at"]]
    finally:
        await fetch(put, UUID(made["uuid"]), kept["password_sealed"])

    async def is_well() -> bool:
        await bench.run()
        return await _found(made) == []

    await until(is_well)


async def _found(made: dict[str, str]) -> list[Any]:
    return await fetch("SELECT rule, first_seen_at FROM findings WHERE subject = $1", made["uuid"])


async def test_a_session_that_stays_open_does_not_keep_it_from_being_found(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine, connection_hard_limit=3)
    async with bench.session(made) as session:
        await _change_password(bench, made)
        await _tried_last(made)
        await bench.run()
        await session.execute("SELECT 1")
        assert await _told(made) == 1
    assert await login(made["connection_string"]) == 1


async def test_what_a_dead_run_began_is_finished(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    # The password is back, and the one who put it there didn't come to say so.
    await bench.set_row(made["uuid"], "credentials_refused_at = now()")
    ran = await bench.run()
    assert any(repair.startswith(f"Restored the password of database {made['uuid']}") for repair in ran.repairs)
    assert await _told(made) == 1


@pytest.mark.parametrize("state", ["status = 'paused'", "access_revision = access_revision + 1"])
async def test_one_that_is_closed_or_changing_waits(bench: Bench, caller: Caller, state: str) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await _change_password(bench, made)
    await bench.set_row(made["uuid"], state)
    await _tried_last(made)
    await bench.run()
    assert await _told(made) == 0
    await bench.set_row(made["uuid"], "status = 'active', access_revision = access_applied")
    await _tried_last(made)
    await bench.run()
    assert await _told(made) == 1


async def test_every_database_has_its_turn(bench: Bench, caller: Caller) -> None:
    """However many there are: those that were not tried for longest are tried next."""
    made = await caller.created(db_type=bench.host.engine)
    adapter = await bench.adapter()
    recorded = active((await take_snapshot(bench.known, adapter)).recorded.values())
    mine = next(row for row in recorded if str(row.uuid) == made["uuid"])
    await _tried_last(made)
    assert mine in await due(bench.known, adapter, recorded)
    rows = await fetch("SELECT login_tried_at IS NOT NULL AS tried FROM databases WHERE uuid = $1", mine.uuid)
    assert rows[0]["tried"]


async def test_a_tenants_last_connection_is_left_to_it(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine, connection_hard_limit=2)
    adapter = await bench.adapter()
    row = (await take_snapshot(bench.known, adapter)).recorded[made["db_name"]]
    async with bench.session(made):
        assert await due(bench.known, adapter, [row]) == []
        async with bench.session(made):
            # It holds all of them: a login is refused, and takes nothing.
            assert await due(bench.known, adapter, [row]) == [row]
            assert await try_logins(bench.running.box, adapter, [row]) == []

    async def is_idle() -> bool:
        return await due(bench.known, adapter, [row]) == [row]

    await until(is_idle)


async def test_a_blueprint_is_applied_all_the_same(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await _change_password(bench, made)
    application = await applied(caller, made, "CREATE TABLE a (id integer PRIMARY KEY);")
    assert application["status"] == "completed", application
    assert await tables(made) == ["a"]
    assert await _told(made) == 1


async def test_a_question_that_writes_is_answered_all_the_same(bench: Bench, caller: Caller) -> None:
    team = await bench.running.caller(tier="enterprise")
    made = await team.created(db_type=bench.host.engine)
    await bench.as_tenant(made, "CREATE TABLE counted (n integer PRIMARY KEY)")
    await _change_password(bench, made)
    answer = await Asked(team, made).ask_once(sql("INSERT INTO counted VALUES (1), (2)", "write"))
    assert body_of(answer)["result"] == {"type": "write", "affectedRows": 2}
    assert await _told(made) == 1
