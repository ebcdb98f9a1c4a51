"""Which host a new database goes to."""

from collections import Counter
from uuid import UUID

from app.contracts.base import Engine
from app.hosts.changes import drain_host
from app.hosts.loads import loads_of, mark_sick, mark_well, place
from app.store.session import fetch
from tests.operations.support import active, row
from tests.support.answers import data_of, error_of
from tests.support.in_process import LoneApi
from tests.support.meeting import meet


async def hosts_of_databases() -> Counter[int]:
    return Counter(row["host_id"] for row in await fetch("SELECT host_id FROM databases"))


async def only_hosts(lone: LoneApi, *hosts: dict[str, object]) -> list[int]:
    await fetch("DELETE FROM engine_hosts")
    return [await lone.add_host(**host) for host in hosts]


async def test_equal_hosts_fill_evenly(lone: LoneApi) -> None:
    hosts = await only_hosts(lone, {}, {}, {})
    caller = await lone.caller()
    for _ in range(6):
        await caller.create()
    assert await hosts_of_databases() == dict.fromkeys(hosts, 2)


async def test_a_larger_host_takes_more(lone: LoneApi) -> None:
    small, large = await only_hosts(lone, {"capacity": 2}, {"capacity": 8})
    caller = await lone.caller()
    for _ in range(5):
        await caller.create()
    assert await hosts_of_databases() == {small: 1, large: 4}


async def test_allocated_connections_count_as_load(lone: LoneApi) -> None:
    hosts = await only_hosts(lone, {"connection_capacity": 500}, {"connection_capacity": 500})
    caller = await lone.caller()
    await caller.create(plan="pro")
    for _ in range(4):
        await caller.create()
    assert await hosts_of_databases() == {hosts[0]: 1, hosts[1]: 4}


async def test_a_full_host_gets_nothing(lone: LoneApi) -> None:
    await only_hosts(lone, {"capacity": 1}, {"connection_capacity": 15})
    caller = await lone.caller()
    for _ in range(2):
        data_of(await caller.create(), 202)
    error = error_of(await caller.create(), 422, "capacity_exhausted")
    assert "10 connections" in error["message"]
    assert max((await hosts_of_databases()).values()) == 1


async def test_connections_are_allocated_several_times(lone: LoneApi) -> None:
    once, twice = await only_hosts(
        lone, {"connection_capacity": 15}, {"connection_capacity": 15, "connection_overcommit": 2}
    )
    caller = await lone.caller()
    for _ in range(4):
        data_of(await caller.create(), 202)
    error_of(await caller.create(), 422, "capacity_exhausted")
    assert await hosts_of_databases() == {once: 1, twice: 3}


async def test_room_for_fewer_connections_may_be_left(lone: LoneApi) -> None:
    await only_hosts(lone, {"connection_capacity": 15})
    caller = await lone.caller()
    data_of(await caller.create(), 202)
    error_of(await caller.create(), 422, "capacity_exhausted")
    assert data_of(await caller.create(connection_hard_limit=5), 202)["limits"]["connection_hard_limit"] == 5


async def test_the_last_place_is_taken_once(lone: LoneApi) -> None:
    await only_hosts(lone, {"capacity": 1})
    caller = await lone.caller()
    answers = await meet(lone.control_dsn, "engine_hosts", (caller.create() for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [202] + [422] * 7


async def test_a_deleted_database_holds_its_place_until_it_is_destroyed(lone: LoneApi) -> None:
    await only_hosts(lone, {"capacity": 1, "connection_capacity": 10})
    caller = await lone.caller()
    data_of(await caller.create(), 202)
    await fetch("UPDATE databases SET status = 'deleted', remote_since = now()")
    error_of(await caller.create(), 422, "capacity_exhausted")
    await fetch("UPDATE databases SET destroyed_at = now()")
    data_of(await caller.create(), 202)


async def test_a_draining_host_gets_nothing(lone: LoneApi) -> None:
    draining, open_ = await only_hosts(lone, {"capacity": 1000}, {"capacity": 1})
    await drain_host(draining)
    caller = await lone.caller()
    data_of(await caller.create(), 202)
    assert await hosts_of_databases() == {open_: 1}
    error_of(await caller.create(), 422, "capacity_exhausted")


async def test_a_sick_host_is_the_last_choice(lone: LoneApi) -> None:
    sick, well = await only_hosts(lone, {}, {"capacity": 2})
    await mark_sick(sick, "nobody answers")
    caller = await lone.caller()
    for _ in range(2):
        await caller.create()
    assert await hosts_of_databases() == {well: 2}
    await caller.create()
    assert await hosts_of_databases() == {well: 2, sick: 1}


async def test_a_sick_host_is_placed_on_again_once_it_worked_or_after_a_while(lone: LoneApi) -> None:
    first, second = await only_hosts(lone, {}, {})
    for cure in ("works", "time"):
        await mark_sick(first, "nobody answers")
        assert await chosen() == second
        if cure == "works":
            await mark_well(first)
        else:
            await fetch("UPDATE engine_hosts SET sick_until = now() - interval '1 s'")
        assert await chosen() == first


async def test_the_region_asked_for(lone: LoneApi) -> None:
    near, far = await only_hosts(lone, {}, {"region": "eu-west-1", "capacity": 1})
    caller = await lone.caller()
    made = data_of(await caller.create(region="eu-west-1"), 202)
    assert made["region"] == "eu-west-1"
    error = error_of(await caller.create(region="eu-west-1"), 422, "capacity_exhausted")
    assert error["details"] == {"field": "region"}
    assert data_of(await caller.create(), 202)["region"] == "us-east-1"
    assert await hosts_of_databases() == {near: 1, far: 1}


async def test_without_a_region_the_least_loaded_one_is_chosen(lone: LoneApi) -> None:
    await only_hosts(lone, {"capacity": 10}, {"region": "eu-west-1", "capacity": 1000})
    caller = await lone.caller()
    regions = [data_of(await caller.create(), 202)["region"] for _ in range(3)]
    assert regions == ["us-east-1", "eu-west-1", "eu-west-1"]


async def test_a_clone_that_may_pause_its_source_lies_beside_it_while_there_is_storage(lone: LoneApi) -> None:
    caller, source = await active(lone)
    beside, other = (await row(source)).host_id, await lone.add_host()
    await fetch(
        "INSERT INTO database_usage (database_id, storage_bytes) SELECT id, 2^30 FROM databases WHERE uuid = $1"
        " ON CONFLICT (database_id) DO UPDATE SET storage_bytes = 2^30",
        source,
    )
    asked = {"database_uuid": str(source), "pause_source": True}
    for storage_gb, host_id in ((2, beside), (1, other)):
        await fetch("UPDATE engine_hosts SET storage_gb = $2 WHERE id = $1", beside, storage_gb)
        made = data_of(await caller.create(f"clone-{storage_gb}", source=asked), 202)
        assert (await row(UUID(made["uuid"]))).host_id == host_id


async def test_what_a_host_carries(lone: LoneApi) -> None:
    (host,) = await only_hosts(lone, {"capacity": 10, "connection_capacity": 100})
    caller = await lone.caller()
    await caller.create(connection_hard_limit=7)
    await caller.create()
    await fetch("UPDATE databases SET status = 'deleted' WHERE connections = 7")
    (load,) = await loads_of([host])
    assert (load.databases, load.connections) == (2, 10)
    assert load.load() == 0.2
    assert load.has_room(90)
    assert not load.has_room(91)


async def chosen() -> int | None:
    load = await place(Engine.POSTGRES, None, 10)
    return load.id if load else None
