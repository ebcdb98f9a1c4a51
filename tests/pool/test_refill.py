"""What one look at the pools begins and throws away, by the rows alone."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.contracts.base import Engine
from app.core.settings import Settings
from app.databases.pool.members import discard_member
from app.databases.pool.refill import find_unverified, refill
from app.databases.pool.targets import pool_status, set_target
from app.hosts.changes import drain_host
from app.hosts.loads import mark_sick
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.lone_pool import LonePool
from tests.support.moves import make_active

SIZE = 3
SETTINGS = Settings(pool_size=SIZE)
WEEK = timedelta(seconds=SETTINGS.pool_max_age_seconds)


async def look(pool: LonePool, settings: Settings = SETTINGS, *, later: timedelta = timedelta(0)) -> tuple[int, bool]:
    """What is still missing, and whether more can be begun in a moment."""
    found = await refill(DEFAULT_PLANS, pool.box, settings, datetime.now(UTC) + later)
    return found.missing, found.retry_soon


async def members(status: str = "provisioning") -> list[UUID]:
    rows = await fetch("SELECT uuid FROM databases WHERE team_id IS NULL AND status = $1 ORDER BY id", status)
    return [row["uuid"] for row in rows]


async def make_ready() -> None:
    """As the workflows do with all that are on their way."""
    for uuid in await members():
        await make_active(str(uuid))


async def test_what_is_missing_is_begun_without_an_event(pool: LonePool) -> None:
    host = await pool.api.add_host()
    assert await look(pool) == (0, False)
    rows = await fetch("SELECT * FROM databases")
    assert {(row["host_id"], row["plan"], row["connections"], row["team_id"]) for row in rows} == {
        (host, "free", 10, None)
    }
    starts = await fetch("SELECT workflow, priority, input::text AS input FROM workflow_starts")
    assert {(row["workflow"], row["priority"]) for row in starts} == {("ProvisionDatabase", 5)}
    assert len(starts) == len(rows) == SIZE
    assert not any("password" in row["input"] for row in starts)
    await make_ready()
    assert await look(pool) == (0, False)
    assert len(await members("active")) == SIZE
    assert await fetch("SELECT 1 FROM events") == []


async def test_looks_at_once_never_make_too_many(pool: LonePool) -> None:
    await pool.api.add_host()
    await pool.api.warm_up()
    await asyncio.gather(*(look(pool) for _ in range(8)))
    assert len(await members()) == SIZE


async def test_a_large_pool_is_filled_a_few_at_a_time(pool: LonePool) -> None:
    await pool.api.add_host()
    large = Settings(pool_size=10)
    assert await look(pool, large) == (6, True)
    assert await look(pool, large) == (6, True)
    await make_ready()
    assert await look(pool, large) == (2, True)
    await make_ready()
    assert await look(pool, large) == (0, False)


async def test_while_somebody_waits_one_is_made_at_a_time(pool: LonePool) -> None:
    await pool.api.add_host()
    caller = await pool.api.caller()
    data_of(await caller.create(), 202)
    # Asked for just now, however long the looks take.
    await fetch("UPDATE databases SET created_at = now() + interval '1 hour' WHERE team_id IS NOT NULL")
    for _ in range(2):
        assert await look(pool) == (SIZE - 1, True)
    assert len(await members()) == 1
    await fetch("UPDATE databases SET created_at = now() - interval '20 s' WHERE team_id IS NOT NULL")
    assert await look(pool) == (0, False)


async def test_every_region_and_engine_has_a_pool(pool: LonePool) -> None:
    await pool.api.add_host()
    await pool.api.add_host(region="eu-west-1")
    await pool.api.add_host(engine="mysql")
    await look(pool)
    rows = await fetch("SELECT engine, region, count(*) AS n FROM databases GROUP BY 1, 2 ORDER BY 1, 2")
    assert [tuple(row) for row in rows] == [
        ("mysql", "us-east-1", SIZE),
        ("postgres", "eu-west-1", SIZE),
        ("postgres", "us-east-1", SIZE),
    ]


async def test_an_operators_size_goes_before_the_setting(pool: LonePool) -> None:
    await pool.api.add_host()
    await set_target(Engine.POSTGRES, "us-east-1", 1)
    await look(pool)
    assert len(await members()) == 1
    await set_target(Engine.POSTGRES, "us-east-1", None)
    await look(pool)
    assert len(await members()) == SIZE
    await make_ready()
    await set_target(Engine.POSTGRES, "us-east-1", 0)
    await look(pool)
    assert await members("active") == []


async def test_the_status_shows_the_size_that_the_workers_hold_to(pool: LonePool) -> None:
    await pool.add_members(2, await pool.api.add_host())
    assert [(one.size, one.ready) for one in await pool_status(7)] == [(7, 2)]
    await look(pool)
    assert [(one.size, one.ready) for one in await pool_status(7)] == [(SIZE, 2)]
    await look(pool, Settings(pool_size=5))
    assert [(one.size, one.ready) for one in await pool_status(7)] == [(5, 2)]


async def test_without_room_nothing_is_begun(pool: LonePool) -> None:
    await pool.api.add_host(capacity=2)
    assert await look(pool) == (1, False)
    assert len(await members()) == 2


async def test_the_old_stay_until_the_new_are_ready(pool: LonePool) -> None:
    old = await pool.add_members(SIZE, await pool.api.add_host())
    await look(pool, later=WEEK - timedelta(minutes=1))
    assert await members() == []
    await look(pool, later=WEEK)
    assert (await members("active"), len(await members())) == (old, SIZE)
    await make_ready()
    await fetch("UPDATE databases SET provisioned_at = now() + interval '6 days' WHERE uuid <> ALL($1)", old)
    await look(pool, later=WEEK)
    assert await members("deleted") == old
    assert len(await members("active")) == SIZE


async def test_where_there_is_no_room_for_both_the_oldest_goes_first(pool: LonePool) -> None:
    old = await pool.add_members(SIZE, await pool.api.add_host(capacity=SIZE))
    await look(pool, later=WEEK)
    assert await members("deleted") == old[:1]


async def test_members_with_another_number_of_connections_are_replaced(pool: LonePool) -> None:
    await pool.add_members(SIZE, await pool.api.add_host(), connections=5)
    await look(pool)
    assert len(await members()) == SIZE


async def test_a_draining_hosts_are_thrown_away(pool: LonePool) -> None:
    host = await pool.api.add_host()
    given_up = await pool.add_members(SIZE, host)
    await drain_host(host)
    other = await pool.api.add_host()
    await look(pool)
    assert await members("deleted") == given_up
    rows = await fetch("SELECT DISTINCT host_id FROM databases WHERE status = 'provisioning'")
    assert [row["host_id"] for row in rows] == [other]
    starts = await fetch("SELECT workflow_id FROM workflow_starts WHERE workflow = 'DeleteDatabase'")
    assert {row["workflow_id"] for row in starts} == {f"delete-database/{uuid}" for uuid in given_up}


async def test_a_sick_hosts_are_replaced_elsewhere_and_too_many_when_it_is_well(pool: LonePool) -> None:
    sick = await pool.api.add_host()
    waiting = await pool.add_members(SIZE, sick)
    await mark_sick(sick, "nobody answers")
    assert await look(pool) == (SIZE, False), "a sick host gets none"
    await pool.api.add_host()
    await look(pool)
    await make_ready()
    assert len(await members("active")) == 2 * SIZE
    await fetch("UPDATE engine_hosts SET sick_until = NULL")
    await look(pool)
    assert await members("deleted") == waiting


async def test_a_claimed_one_is_not_thrown_away(pool: LonePool) -> None:
    (member,) = await pool.add_members(1, await pool.api.add_host())
    caller = await pool.api.caller()
    data_of(await caller.create(), 201)
    assert not await discard_member(member)
    assert data_of(await caller.get(f"/databases/{member}"))["status"] == "active"


async def test_what_nothing_is_left_of_is_forgotten(pool: LonePool) -> None:
    long_gone, gone = await pool.add_members(2, await pool.api.add_host(), status="deleted")
    await fetch("UPDATE databases SET destroyed_at = now() - interval '4 days' WHERE uuid = $1", long_gone)
    await fetch("UPDATE databases SET destroyed_at = now() - interval '2 days' WHERE uuid = $1", gone)
    await look(pool)
    assert await members("deleted") == [gone]


async def test_what_was_not_tried_for_a_while(pool: LonePool) -> None:
    await pool.add_members(1, await pool.api.add_host())
    tried = await pool.add_members(1, await pool.api.add_host(region="eu-west-1"))
    now = datetime.now(UTC)
    soon, later = now + timedelta(seconds=200), now + timedelta(seconds=400)
    assert await find_unverified(SETTINGS, soon) == []
    assert [one.region for one in await find_unverified(SETTINGS, later)] == ["eu-west-1", "us-east-1"]
    await fetch("UPDATE databases SET verified_at = $2 WHERE uuid = $1", tried[0], soon)
    assert [one.region for one in await find_unverified(SETTINGS, later)] == ["us-east-1"]
