"""Moving a database off a host that failed, as our own database records it: once, whatever is repeated."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest
from temporalio.exceptions import ApplicationError

from activities.engine import EngineActivitiesOnHosts
from app.contracts.base import DatabaseStatus
from app.contracts.control import HostFailure
from app.contracts.databases import Placement
from app.contracts.engine import STORE_UNAVAILABLE
from app.databases import moving, records, states
from app.engines.base import EngineLimits, Tenant
from app.hosts.slots import HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.provisioning import replacing
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, raw_connection, transaction
from tests.support.in_process import LoneApi
from tests.support.lone_pool import LonePool
from tests.support.waiting import until


async def _placed(lone: LoneApi) -> tuple[UUID, Placement]:
    """A database under way on the first of two hosts."""
    await lone.add_host()
    caller = await lone.caller()
    answer = await caller.post("/databases", {"name": "moving", "db_type": "postgres"})
    database = UUID(answer.json()["data"]["uuid"])
    record = await records.find(database)
    assert record is not None
    await lone.add_host()
    return database, record.placement


def _failure(database: UUID, placement: Placement, *, name_taken: bool = False) -> HostFailure:
    return HostFailure(database=database, placement=placement, name_taken=name_taken, reason="no answer in time")


async def _remnants(workflow: str = "RemoveRemnant") -> list[tuple[int, str]]:
    rows = await fetch("SELECT input::text AS input FROM workflow_starts WHERE workflow = $1 ORDER BY id", workflow)
    inputs = [msgspec.json.decode(row["input"]) for row in rows]
    return [(one["host_id"], one["name"]) for one in inputs]


async def _sick() -> list[int]:
    return [row["id"] for row in await fetch("SELECT id FROM engine_hosts WHERE sick_until > now() ORDER BY id")]


async def test_a_move_whose_answer_was_lost_is_not_made_again(lone: LoneApi) -> None:
    database, first = await _placed(lone)
    await states.begin_remote(database)
    moved = await replacing.replace_host(_failure(database, first))
    assert moved.host_id != first.host_id
    assert await replacing.replace_host(_failure(database, first)) == moved
    assert await _sick() == [first.host_id]
    assert await _remnants() == [(first.host_id, first.name)]


async def test_a_place_where_nothing_was_made_leaves_nothing_to_remove(lone: LoneApi) -> None:
    database, first = await _placed(lone)
    await replacing.replace_host(_failure(database, first))
    assert await _remnants() == []


async def test_each_return_to_a_host_is_cleared_by_a_removal_of_its_own(lone: LoneApi) -> None:
    database, place = await _placed(lone)
    given_up = []
    for _ in range(3):
        await states.begin_remote(database)
        given_up.append((place.host_id, place.name))
        place = await replacing.replace_host(_failure(database, place))
        await fetch("UPDATE engine_hosts SET sick_until = NULL")
    assert await _remnants() == given_up
    assert given_up[0] == given_up[2]


async def test_what_a_lost_host_has_is_closed_and_not_removed(lone: LoneApi) -> None:
    """By a name of its own: what doesn't know it leaves it alone."""
    database, first = await _placed(lone)
    await states.begin_remote(database)
    other = await lone.add_host()
    async with transaction():
        record = await records.find_for_update(database)
        assert record is not None
        await moving.move_lost(record, other)
    assert await _remnants() == []
    assert await _remnants("CloseRemnant") == [(first.host_id, first.name)]


class _SlowHost:
    """It makes a database once the test lets it. Stands for the adapters of all hosts."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def of_host(self, host_id: int) -> "_SlowHost":
        return self

    async def create_verified(self, tenant: Tenant, limits: EngineLimits) -> None:
        self.begun.set()
        await self.may_end.wait()


async def test_an_attempt_that_outlives_its_move_makes_nothing_active(pool: LonePool) -> None:
    database, first = await _placed(pool.api)
    host: Any = _SlowHost()
    steps = EngineActivitiesOnHosts(DEFAULT_PLANS, pool.box, host, HostSlots(), RunningProvisionings())
    outliving = asyncio.create_task(steps.create_database(database))
    await until(lambda: host.begun.is_set() or outliving.done())
    moved = await replacing.replace_host(_failure(database, first))
    assert moved.host_id != first.host_id
    host.may_end.set()
    with pytest.raises(ApplicationError) as refused:
        await outliving
    assert (refused.value.type, refused.value.non_retryable) == (STORE_UNAVAILABLE, False)
    assert await _state(database) == (DatabaseStatus.PROVISIONING, moved)
    await steps.create_database(database)
    assert await _state(database) == (DatabaseStatus.ACTIVE, moved)


async def _state(database: UUID) -> tuple[DatabaseStatus, Placement]:
    record = await records.find(database)
    assert record is not None
    return record.status, record.placement


async def test_a_taken_name_is_changed_on_the_same_host(lone: LoneApi) -> None:
    database, first = await _placed(lone)
    renamed = await replacing.replace_host(_failure(database, first, name_taken=True))
    assert renamed.host_id == first.host_id
    assert renamed.name != first.name
    assert await _sick() == []


async def test_it_stays_where_it_is_when_the_others_are_sick_too(lone: LoneApi) -> None:
    database, first = await _placed(lone)
    await fetch("UPDATE engine_hosts SET sick_until = now() + interval '1 minute'")
    assert await replacing.replace_host(_failure(database, first)) == first
    assert await _remnants() == []


async def test_members_give_way_to_what_is_moved(pool: LonePool) -> None:
    database, first = await _placed(pool.api)
    [row] = await fetch("SELECT id FROM engine_hosts WHERE id <> $1", first.host_id)
    await fetch("UPDATE engine_hosts SET connection_capacity = 30 WHERE id = $1", row["id"])
    members = await pool.add_members(3, row["id"])
    moved = await replacing.replace_host(_failure(database, first))
    assert moved.host_id == row["id"]
    statuses = [(await _state(member))[0] for member in members]
    assert statuses == [DatabaseStatus.DELETED, DatabaseStatus.ACTIVE, DatabaseStatus.ACTIVE]


async def test_moves_and_creates_at_once_never_wait_for_each_other(lone: LoneApi) -> None:
    for _ in range(2):
        await lone.add_host()
    caller = await lone.caller()
    for _ in range(4):
        answers = await asyncio.gather(*(caller.post("/databases", {"name": "db"}) for _ in range(8)))
        made = [await records.find(UUID(answer.json()["data"]["uuid"])) for answer in answers]
        failures = [_failure(one.uuid, one.placement) for one in made if one is not None]
        work = [replacing.replace_host(failure) for failure in failures]
        creates = [caller.post("/databases", {"name": "db"}) for _ in range(8)]
        _, created = await asyncio.gather(asyncio.gather(*work), asyncio.gather(*creates))
        assert {answer.status_code for answer in created} == {202}
        await fetch("UPDATE engine_hosts SET sick_until = NULL")


async def test_who_waits_for_a_move_finds_the_moved_database(lone: LoneApi) -> None:
    database, first = await _placed(lone)
    other = await lone.add_host()
    await lone.warm_up()
    holds = asyncio.Event()

    async def move() -> None:
        async with transaction():
            await fetch("UPDATE databases SET host_id = $2 WHERE uuid = $1", database, other)
            holds.set()
            await until(_somebody_waits)

    async def read() -> int | None:
        await holds.wait()
        async with transaction():
            found = await records.find_for_update(database)
        return None if found is None else found.host_id

    _, found = await asyncio.gather(move(), read())
    assert first.host_id != other
    assert found == other


async def _somebody_waits() -> bool:
    async with raw_connection() as connection:
        return bool(await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
