"""Creates that the pool serves in one statement: what they cost, and what becomes of them when somebody is faster."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from app.core.clock import utc_now
from app.outbox.events import CHANNEL
from app.store.session import fetch
from tests.limits.round_trips import Counter, counting
from tests.pool.process import process
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.lone_pool import LonePool, lone_pool
from tests.support.moves import events_of
from tests.support.principals import principal_of
from tests.support.waiting import until

_LOCK_WAITED_FOR = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def test_two_round_trips_with_that_of_the_key_and_three_behind_the_answer(control_dsn: str) -> None:
    async with counting(control_dsn) as (dsn, counter), lone_pool(dsn) as pool:
        await pool.add_members(16, await pool.api.add_host())
        caller = await pool.api.caller()
        for _ in range(3):  # statements are prepared once a connection
            data_of(await caller.create(), 201)
            # Behind the answer come the notices of an event and of the claim, and the reading of the next member.
            await until(counter.is_quiet)
        end = (utc_now() + timedelta(days=1)).isoformat()
        requests: list[dict[str, Any]] = [{}, {"deletion_protection": True}, {"expires_at": end}, {}]
        # The fewest of three: now and then the notice behind one answer falls into the time of the next.
        for request in requests:
            assert min([await _round_trips(caller, counter, request) for _ in range(3)]) <= 2 + 3


async def _round_trips(caller: Caller, counter: Counter, request: dict[str, Any]) -> int:
    counter.count = 0
    data_of(await caller.create(**request), 201)
    await until(counter.is_quiet)
    return counter.count


async def test_the_change_its_event_and_its_answer_are_one_transaction(pool: LonePool) -> None:
    await pool.add_members(1, await pool.api.add_host())
    caller, key = await pool.api.caller(), str(uuid4())
    uuid = data_of(await caller.create(key=key), 201)["uuid"]
    rows = await fetch(
        "SELECT xmin::text FROM databases WHERE uuid = $1"
        " UNION ALL SELECT xmin::text FROM idempotency_keys WHERE key = $2 AND response_status = 201"
        " UNION ALL SELECT xmin::text FROM events WHERE team_id = $3",
        UUID(uuid),
        key,
        caller.team_id,
    )
    assert len(rows) == 3
    assert len({row["xmin"] for row in rows}) == 1


async def test_the_outbox_is_notified_soon_afterwards(pool: LonePool) -> None:
    await pool.add_members(1, await pool.api.add_host())
    caller, told = await pool.api.caller(), asyncio.Event()
    listener = await asyncpg.connect(pool.api.control_dsn)
    try:
        await listener.add_listener(CHANNEL, lambda *_: told.set())
        data_of(await caller.create(), 201)
        await asyncio.wait_for(told.wait(), 60)
    finally:
        await listener.close()


async def test_a_member_that_somebody_else_took_since_it_was_read(pool: LonePool) -> None:
    first, second = await pool.add_members(2, await pool.api.add_host())
    caller, faster = await pool.api.caller(), await pool.api.caller()
    other = await asyncpg.connect(pool.api.control_dsn)
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE idempotency_keys IN SHARE MODE")  # until which nothing can be claimed
            create = asyncio.ensure_future(caller.create())
            await until(lambda: fetch(_LOCK_WAITED_FOR))
            await fetch("UPDATE databases SET team_id = $2 WHERE uuid = $1", first, faster.team_id)
    finally:
        await other.close()
    assert data_of(await create, 201)["uuid"] == str(second)
    assert await events_of(str(first)) == []


async def test_two_processes_never_give_one_member_twice(pool: LonePool) -> None:
    await pool.add_members(20, await pool.api.add_host())
    principal = principal_of(await pool.api.caller())
    await pool.api.warm_up()
    began = utc_now()
    async with process(pool.box, principal) as one, process(pool.box, principal) as other:
        made = await asyncio.gather(*((one, other)[number % 2].create() for number in range(30)))
    given = [one for one in made if one is not None]
    assert given
    for table in ("databases WHERE team_id IS NOT NULL", "events", "idempotency_keys"):
        (row,) = await fetch(f"SELECT count(*) FROM {table}")
        assert row["count"] == len(given), table
    rows = await fetch("SELECT DISTINCT resource FROM idempotency_keys")
    assert len(rows) == len(given)
    assert all(row["created_at"] >= began for row in await fetch("SELECT created_at FROM databases WHERE team_id > 0"))
