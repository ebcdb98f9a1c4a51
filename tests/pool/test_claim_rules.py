"""Which member a create gets, and when it gets none, by the rows alone."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from app.hosts.changes import drain_host
from app.hosts.loads import loads_of, mark_recovered, mark_sick
from app.store.notify import announce
from app.store.session import fetch
from tests.pool.process import process
from tests.support.answers import body_of, data_of, error_of
from tests.support.lone_pool import LonePool, lone_pool
from tests.support.meeting import meet
from tests.support.moves import events_of
from tests.support.pending_starts import pending_ids
from tests.support.principals import principal_of
from tests.support.waiting import LIMIT_SECONDS, until

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def test_what_a_client_sees_of_a_claim(pool: LonePool) -> None:
    (member,) = await pool.add_members(1, await pool.api.add_host(), created_at=LONG_AGO, updated_at=LONG_AGO)
    caller = await pool.api.caller()
    assert data_of(await caller.get("/databases")) == []
    error_of(await caller.get(f"/databases/{member}"), 404, "not_found")
    error_of(await caller.delete(f"/databases/{member}"), 404, "not_found")
    body = body_of(await caller.create("orders", warning_threshold_pct=50), 201)
    data = body["data"]
    assert body["message"] == "Database created."
    assert "provisioning" not in body
    assert (data["uuid"], data["name"], data["status"]) == (str(member), "orders", "active")
    assert data["quotas"]["warning_threshold_pct"] == 50
    assert data["created_at"] == data["updated_at"] > "2026"
    assert data_of(await caller.get(f"/databases/{member}")) == data
    assert await events_of(data["uuid"]) == ["database.provisioned"]
    assert await pending_ids() == [f"provision-database/{member}"]  # its own, from the time that it was made


async def test_a_claimed_database_is_the_newest_of_the_list(pool: LonePool) -> None:
    host = await pool.api.add_host()
    await pool.add_members(2, host)
    caller = await pool.api.caller()
    await fetch("UPDATE databases SET status = 'provisioning'")
    first = data_of(await caller.create("made-for-it"), 202)["uuid"]
    await fetch("UPDATE databases SET status = 'active'")
    later = [data_of(await caller.create("claimed"), 201)["uuid"] for _ in range(2)]
    listed = [one["uuid"] for one in data_of(await caller.get("/databases"))]
    assert listed == [*reversed(later), first]
    page = data_of(await caller.get(f"/databases?limit=1&starting_after={later[1]}"))
    assert [one["uuid"] for one in page] == [later[0]]


async def test_the_oldest_goes_first_and_none_twice(pool: LonePool) -> None:
    members = await pool.add_members(5, await pool.api.add_host())
    caller = await pool.api.caller()
    async with process(pool.box, principal_of(caller)) as alone:
        assert [await alone.made() for _ in range(5)] == members
    data_of(await caller.create(), 202)


async def test_many_creates_at_once(pool: LonePool) -> None:
    members = await pool.add_members(8, await pool.api.add_host())
    caller = await pool.api.caller()
    await pool.api.warm_up()
    answers = await asyncio.gather(*(caller.create() for _ in range(12)))
    given = [data_of(answer, answer.status_code)["uuid"] for answer in answers]
    assert len(set(given)) == 12
    assert sorted(answer.status_code for answer in answers) == [201] * 8 + [202] * 4
    assert {str(member) for member in members} <= set(given)


async def test_a_member_that_is_being_taken_is_passed_over(pool: LonePool) -> None:
    first, second = await pool.add_members(2, await pool.api.add_host())
    caller = await pool.api.caller()
    other = await asyncpg.connect(pool.api.control_dsn)
    try:
        async with other.transaction():
            await other.execute("SELECT 1 FROM databases WHERE uuid = $1 FOR NO KEY UPDATE", first)
            answer = await asyncio.wait_for(caller.create(), LIMIT_SECONDS)
    finally:
        await other.close()
    assert data_of(answer, 201)["uuid"] == str(second)


async def test_another_engine_or_region_has_none(pool: LonePool) -> None:
    near = await pool.api.add_host()
    far = await pool.api.add_host(region="eu-west-1")
    await pool.api.add_host(engine="mysql")
    (member,) = await pool.add_members(1, far)
    caller = await pool.api.caller()
    data_of(await caller.create(db_type="mysql"), 202)
    data_of(await caller.create(region="us-east-1"), 202)
    data = data_of(await caller.create(), 201)
    assert (data["uuid"], data["region"]) == (str(member), "eu-west-1")
    (load,) = await loads_of([near])
    assert load.databases == 1


async def test_a_host_that_drains_or_is_sick_gives_none(pool: LonePool) -> None:
    draining, sick = await pool.api.add_host(), await pool.api.add_host()
    for host in (draining, sick):
        await pool.add_members(1, host)
    await drain_host(draining)
    await mark_sick(sick, "nobody answers")
    caller = await pool.api.caller()
    data_of(await caller.create(), 202)
    await fetch("UPDATE engine_hosts SET sick_until = now() - interval '1 s' WHERE id = $1", sick)
    data_of(await caller.create(), 202)
    await mark_recovered(sick)
    data_of(await caller.create(), 201)
    data_of(await caller.create(), 202)


async def test_more_connections_need_room_on_the_members_host(pool: LonePool) -> None:
    small, roomy = await pool.api.add_host(connection_capacity=49), await pool.api.add_host(connection_capacity=500)
    (cramped,) = await pool.add_members(1, small)
    caller = await pool.api.caller()
    assert data_of(await caller.create(plan="launch"), 202)["uuid"] != str(cramped)
    (member,) = await pool.add_members(1, roomy)
    data = data_of(await caller.create(plan="launch"), 201)
    assert (data["uuid"], data["limits"]["connection_hard_limit"]) == (str(member), 50)
    assert [load.connections for load in await loads_of([small, roomy])] == [10, 100]
    assert data_of(await caller.create(), 201)["uuid"] == str(cramped)


async def test_the_last_room_for_more_connections_is_taken_once(pool: LonePool) -> None:
    host = await pool.api.add_host(connection_capacity=99)
    await pool.add_members(3, host)
    caller = await pool.api.caller()
    answers = await meet(pool.api.control_dsn, "engine_hosts", (caller.create(plan="launch") for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422]
    (load,) = await loads_of([host])
    assert load.connections == 70


async def test_limits_that_differ_are_asked_for_and_the_answer_says_so(pool: LonePool) -> None:
    (member,) = await pool.add_members(1, await pool.api.add_host())
    caller = await pool.api.caller()
    body = body_of(await caller.create(connection_hard_limit=3), 201)
    assert body["data"]["status"] == "active"
    assert body["message"] == "Database created; its limits follow in a moment."
    assert f"apply-limits/{member}/1" in await pending_ids()
    (row,) = await fetch("SELECT connections, limits_revision, limits_applied FROM databases WHERE uuid = $1", member)
    assert dict(row) == {"connections": 3, "limits_revision": 1, "limits_applied": 0}


async def test_a_member_that_is_deleted_before_its_limits_are_in_force(control_dsn: str) -> None:
    async with lone_pool(control_dsn, limits_timeout_seconds=LIMIT_SECONDS) as pool:
        (member,) = await pool.add_members(1, await pool.api.add_host())
        caller = await pool.api.caller()
        creating = asyncio.create_task(caller.create(connection_hard_limit=3))
        await until(lambda: fetch("SELECT 1 FROM databases WHERE uuid = $1 AND team_id IS NOT NULL", member))
        await fetch(
            "UPDATE databases SET status = 'deleted', deleted_at = now(), destroy_at = now() WHERE uuid = $1", member
        )
        await announce(member)
        error_of(await creating, 404, "not_found")


async def test_a_member_whose_limits_are_not_in_force_yet(pool: LonePool) -> None:
    (member,) = await pool.add_members(1, await pool.api.add_host(), limits_revision=1)
    caller = await pool.api.caller()
    assert body_of(await caller.create(), 201)["message"] == "Database created; its limits follow in a moment."
    assert f"apply-limits/{member}/1" in await pending_ids()


async def test_one_key_claims_one(pool: LonePool) -> None:
    await pool.add_members(3, await pool.api.add_host())
    caller, key = await pool.api.caller(), str(uuid4())
    first = body_of(await caller.create(key=key), 201)
    again = body_of(await caller.create(key=key), 201)
    assert again["idempotency_replay"]
    assert again["data"] == first["data"]
    assert len(await fetch("SELECT 1 FROM databases WHERE team_id = $1", caller.team_id)) == 1


async def test_a_retry_after_a_death_gets_what_was_claimed(pool: LonePool) -> None:
    await pool.add_members(3, await pool.api.add_host())
    caller, key = await pool.api.caller(), str(uuid4())
    data = data_of(await caller.create(key=key, connection_hard_limit=3), 201)
    # As a process leaves it that dies between its commit and its answer.
    await fetch(
        "UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL, owner = $2,"
        " locked_until = now() - interval '1 s' WHERE key = $1",
        key,
        uuid4(),
    )
    assert data_of(await caller.create(key=key, connection_hard_limit=3), 201) == data
    assert len(await fetch("SELECT 1 FROM databases WHERE team_id = $1", caller.team_id)) == 1


async def test_a_free_team_may_claim_one(pool: LonePool) -> None:
    await pool.add_members(3, await pool.api.add_host())
    caller = await pool.api.caller(tier="free")
    data_of(await caller.create(), 201)
    error_of(await caller.create(), 422, "plan_limit_exceeded")
    assert len(await fetch("SELECT 1 FROM databases WHERE team_id IS NULL")) == 2


async def test_a_refused_create_takes_none(pool: LonePool) -> None:
    await pool.add_members(1, await pool.api.add_host())
    caller = await pool.api.caller()
    error_of(await caller.create(region="mars-1"), 422, "invalid_field")
    assert len(await fetch("SELECT 1 FROM databases WHERE team_id IS NULL")) == 1


async def test_what_is_being_destroyed_of_the_teams_is_counted_first(control_dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "plans.toml"
    file.write_text("[tiers.pro]\ndeleted_databases = 1\n")
    async with lone_pool(control_dsn, plans_file=file) as pool:
        await pool.add_members(4, await pool.api.add_host())
        caller = await pool.api.caller()
        gone = [data_of(await caller.create(), 201)["uuid"] for _ in range(2)]
        await fetch("UPDATE databases SET status = 'deleted', destroy_at = now() WHERE team_id IS NOT NULL")
        error_of(await caller.create(), 429, "deletions_pending")
        assert len(await fetch("SELECT 1 FROM databases WHERE team_id IS NULL")) == 2
        await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", UUID(gone[0]))
        data_of(await caller.create(), 201)
