"""Members give way to databases that somebody asked for, as few of them as will do."""

from uuid import uuid4

from app.store.session import fetch
from tests.support.answers import data_of, error_of
from tests.support.lone_pool import LonePool
from tests.support.pending_starts import pending_ids


async def _ready() -> list[str]:
    rows = await fetch("SELECT uuid FROM databases WHERE team_id IS NULL AND status = 'active' ORDER BY position")
    return [str(row["uuid"]) for row in rows]


async def test_a_large_plan_takes_the_room_of_as_few_members_as_it_needs(pool: LonePool) -> None:
    members = await pool.add_members(5, await pool.api.add_host(connection_capacity=70))
    caller = await pool.api.caller()
    made = data_of(await caller.create(plan="launch"), 202)
    assert made["status"] == "provisioning"
    assert await _ready() == [str(member) for member in members[3:]], "20 of the 70 were free, and the oldest gave 30"
    assert {f"delete-database/{member}" for member in members[:3]} <= set(await pending_ids())
    # What is ready is claimed all the same.
    assert data_of(await caller.create(), 201)["uuid"] == str(members[3])


async def test_where_all_of_them_would_not_do_none_goes(pool: LonePool) -> None:
    members = await pool.add_members(3, await pool.api.add_host(connection_capacity=40))
    caller = await pool.api.caller()
    error_of(await caller.create(plan="launch"), 422, "capacity_exhausted")
    assert len(await _ready()) == len(members)


async def test_the_host_that_fewest_have_to_go_from(pool: LonePool) -> None:
    crowded, roomy = [await pool.api.add_host(connection_capacity=room) for room in (50, 60)]
    await pool.add_members(5, crowded)
    members = await pool.add_members(3, roomy)
    caller = await pool.api.caller()
    made = data_of(await caller.create(plan="launch"), 202)
    assert len(await _ready()) == 6
    rows = await fetch("SELECT host_id FROM databases WHERE uuid::text = $1", made["uuid"])
    assert rows[0]["host_id"] == roomy
    assert str(members[2]) in await _ready()


async def test_more_connections_for_one_that_is_there(pool: LonePool) -> None:
    """Whatever number of databases its host takes by now."""
    await pool.add_members(3, await pool.api.add_host(connection_capacity=30))
    caller = await pool.api.caller()
    made = data_of(await caller.create(), 201)
    await fetch("UPDATE engine_hosts SET capacity = 1")
    path = f"/databases/{made['uuid']}"
    await caller.patch(f"{path}/quotas", {"connection_hard_limit": 20}, key=str(uuid4()))
    assert data_of(await caller.get(path))["limits"]["connection_hard_limit"] == 20
    assert len(await _ready()) == 1
