"""The member that was read after the last claim: it serves the next create if nothing has changed it since, it is never
given out otherwise, and it is nobody's meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.databases.ownership import MemberKind, ReadyMember, find_ready
from app.databases.pool import claim
from app.hosts.changes import drain_host
from app.hosts.loads import mark_sick
from app.store.session import fetch
from tests.limits.round_trips import counting
from tests.pool.process import Process, process
from tests.support.answers import data_of
from tests.support.lone_pool import LonePool, lone_pool
from tests.support.principals import principal_of
from tests.support.waiting import until


@pytest_asyncio.fixture
async def alone(pool: LonePool) -> AsyncIterator[Process]:
    async with process(pool.box, principal_of(await pool.api.caller())) as one:
        yield one


async def _ahead(pool: LonePool, *processes: Process) -> tuple[int, UUID]:
    """A host, and the member on it that these processes know. There is another, on another host."""
    first, second = await pool.api.add_host(), await pool.api.add_host()
    await pool.add_members(len(processes) + 1, first)
    await pool.add_members(len(processes), second)
    for one in processes:
        await one.made()
    for one in processes:
        await one.prefetch()
    (known,) = {uuid for one in processes for uuid in one.known()}
    return first, known


async def _row(member: UUID) -> dict[str, Any]:
    (row,) = await fetch("SELECT * FROM databases WHERE uuid = $1", member)
    return dict(row)


async def test_a_create_asks_our_database_once(control_dsn: str) -> None:
    async with (
        counting(control_dsn) as (dsn, counter),
        lone_pool(dsn) as pool,
        process(pool.box, principal_of(await pool.api.caller())) as alone,
    ):
        _, known = await _ahead(pool, alone)
        counter.count = 0
        assert await alone.made() == known
        assert counter.count == 1


@pytest.mark.parametrize(
    "change",
    [
        "team_id = (SELECT max(id) FROM teams), name = 'taken'",
        "status = 'deleted'",
        "destroyed_at = now()",
        "connections = 50",
        "limits_revision = limits_revision + 1",
    ],
)
async def test_one_that_has_changed_since(pool: LonePool, alone: Process, change: str) -> None:
    _, known = await _ahead(pool, alone)
    await fetch(f"UPDATE databases SET {change} WHERE uuid = $1", known)
    before = await _row(known)
    assert await alone.made() != known
    assert await _row(known) == before


@pytest.mark.parametrize("what", ["drains", "is sick"])
async def test_one_whose_host_gives_none_since(pool: LonePool, alone: Process, what: str) -> None:
    host, known = await _ahead(pool, alone)
    await (drain_host(host) if what == "drains" else mark_sick(host, "nobody answers"))
    before = await _row(known)
    assert await alone.made() != known
    assert await _row(known) == before


async def test_a_host_that_has_moved_since_is_shown_as_it_is(pool: LonePool, alone: Process) -> None:
    host, known = await _ahead(pool, alone)
    await fetch("UPDATE engine_hosts SET port = 6432 WHERE id = $1", host)
    created = await alone.create()
    assert created is not None
    assert (created.data.uuid, created.data.port) == (known, 6432)


async def test_two_processes_that_know_the_same_one(pool: LonePool, alone: Process) -> None:
    async with process(pool.box, alone.principal) as other:
        _, known = await _ahead(pool, alone, other)
        created = await asyncio.gather(alone.create(), other.create())
    # Whoever reads the next one before the other has committed finds the same again, and is left to the longer way.
    given = [one.data.uuid for one in created if one is not None]
    assert known in given
    assert len(set(given)) == len(given)
    of_team = await fetch("SELECT 1 FROM databases WHERE team_id = $1", alone.principal.team_ids[0])
    assert len(of_team) == 2 + len(given)


async def test_it_is_kept_from_nobody(pool: LonePool, alone: Process) -> None:
    _, known = await _ahead(pool, alone)
    async with process(pool.box, alone.principal) as other:
        assert await other.made() == known
    async with asyncio.TaskGroup() as all_at_once:
        creates = [all_at_once.create_task(alone.create()) for _ in range(3)]
    assert sorted(create.result() is None for create in creates) == [False, True, True]


async def test_each_serves_one_create(pool: LonePool, alone: Process) -> None:
    host = await pool.api.add_host()
    await pool.add_members(6, host)
    await alone.made()
    await alone.prefetch()
    given = await asyncio.gather(*(alone.made() for _ in range(5)))
    assert len(set(given)) == 5
    assert alone.known() == []


async def test_requests_of_another_kind_are_served_by_others(pool: LonePool, alone: Process) -> None:
    near, far = await pool.api.add_host(), await pool.api.add_host(region="eu-west-1")
    (_, known) = await pool.add_members(2, near)
    (elsewhere,) = await pool.add_members(1, far)
    await alone.made()
    await alone.prefetch()
    assert alone.known() == [known]
    assert await alone.made(region="eu-west-1") == elsewhere
    assert await alone.made() == known


async def test_after_a_while_it_is_forgotten(control_dsn: str) -> None:
    async with (
        counting(control_dsn) as (dsn, counter),
        lone_pool(dsn) as pool,
        process(pool.box, principal_of(await pool.api.caller()), lifetime_seconds=-1) as alone,
    ):
        _, known = await _ahead(pool, alone)
        counter.count = 0
        assert await alone.made() == known
        assert counter.count == 2


async def test_a_key_that_has_come_before_takes_none(pool: LonePool, alone: Process) -> None:
    host = await pool.api.add_host()
    await pool.add_members(3, host)
    key = str(uuid4())
    await alone.made(key=key)
    await alone.prefetch()
    (known,) = alone.known()
    before = await _row(known)
    assert await alone.create(key=key) is None
    assert await _row(known) == before
    await alone.prefetch()
    assert await alone.made() == known


async def test_the_team_and_the_time_are_those_of_the_create(pool: LonePool, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead: list[ReadyMember] = []

    async def noted(kind: MemberKind, *, without: list[int], most: int) -> list[ReadyMember]:
        found = await find_ready(kind, without=without, most=most)
        # A create that reads one for itself reads no other.
        if most > 1:
            ahead.extend(found)
        return found

    monkeypatch.setattr(claim, "find_ready", noted)
    await pool.add_members(2, await pool.api.add_host())
    caller = await pool.api.caller()
    data_of(await caller.create(), 201)
    await until(lambda: ahead)
    await fetch("UPDATE teams SET name = 'renamed' WHERE id = $1", caller.team_id)
    (began,) = await fetch("SELECT clock_timestamp() AS at")
    data = data_of(await caller.create(), 201)
    assert data["team_name"] == "renamed"
    assert data["created_at"] == data["updated_at"] > began["at"].isoformat()
    assert data_of(await caller.get(f"/databases/{data['uuid']}")) == data
