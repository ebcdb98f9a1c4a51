"""A scan of a list while rows come and go: what was there before and stays is seen once, in order."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store.session import fetch
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api

NEITHER, INSERT, DELETE = range(3)


@pytest_asyncio.fixture(scope="module")
async def shared(copies: Copies) -> AsyncIterator[LoneApi]:
    async with copies.lent() as dsn, lone_api(dsn) as api:
        await api.add_host(capacity=1_000_000, connection_capacity=100_000_000)
        yield api


async def insert(caller: Caller) -> str:
    uuid: str = data_of(await caller.create(), 202)["uuid"]
    return uuid


async def remove(uuid: str) -> None:
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", uuid)


async def scan(caller: Caller, limit: int, between: Callable[[], Awaitable[None]]) -> list[str]:
    """All pages; `between` runs after each."""
    seen: list[str] = []
    more, cursor = True, None
    while more:
        params = {"limit": str(limit)} | ({"starting_after": cursor} if cursor else {})
        body = body_of(await caller.get("/databases", params=params))
        page = [item["uuid"] for item in body["data"]]
        assert len(page) <= limit
        assert page or not body["has_more"]
        assert not set(page) & set(seen), "a row was doubled"
        seen, more = seen + page, body["has_more"]
        cursor = page[-1] if page else None
        await between()
    return seen


def is_faithful(seen: list[str], before: list[str], deleted: set[str]) -> bool:
    """`before` is what was there, newest first."""
    return [uuid for uuid in seen if uuid in before and uuid not in deleted] == [
        uuid for uuid in before if uuid not in deleted
    ]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    rows=st.integers(0, 9),
    limit=st.integers(1, 4),
    changes=st.lists(st.tuples(st.sampled_from([NEITHER, INSERT, DELETE]), st.integers(0, 99)), max_size=12),
)
async def test_changes_between_pages(shared: LoneApi, rows: int, limit: int, changes: list[tuple[int, int]]) -> None:
    caller = await shared.caller()
    before = [await insert(caller) for _ in range(rows)][::-1]
    deleted: set[str] = set()
    waiting = iter(changes)

    async def change() -> None:
        what, which = next(waiting, (NEITHER, 0))
        if what == INSERT:
            await insert(caller)
        elif what == DELETE and before:
            deleted.add(before[which % rows])
            await remove(before[which % rows])

    assert is_faithful(await scan(caller, limit, change), before, deleted)


@pytest.mark.parametrize("seed", range(2))
async def test_changes_at_any_moment(shared: LoneApi, seed: int) -> None:
    dice = random.Random(seed)
    caller = await shared.caller()
    before = [await insert(caller) for _ in range(40)][::-1]
    deleted: set[str] = set()
    stop = asyncio.Event()

    async def keep_changing() -> None:
        while not stop.is_set():
            if dice.random() < 0.7:
                await insert(caller)
            else:
                victim = dice.choice(before)
                deleted.add(victim)
                await remove(victim)

    changing = [asyncio.create_task(keep_changing()) for _ in range(3)]
    for _ in range(3):
        gone = set(deleted)
        seen = await scan(caller, dice.randint(1, 9), lambda: asyncio.sleep(0))
        assert is_faithful(seen, [uuid for uuid in before if uuid not in gone], deleted)
    stop.set()
    await asyncio.gather(*changing)


async def test_a_row_that_is_committed_late(shared: LoneApi) -> None:
    """Its place is among older rows, since its number was drawn before theirs: no page that was read is disturbed."""
    caller = await shared.caller()
    older = await insert(caller)
    slow = await asyncpg.connect(shared.control_dsn)
    try:
        transaction = slow.transaction()
        await transaction.start()
        (late,) = await slow.fetch(
            "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
            " connections)"
            " SELECT gen_random_uuid(), team_id, 'late', engine, region, plan, status, host_id, 'late', connections"
            " FROM databases WHERE uuid = $1 RETURNING uuid::text AS uuid",
            older,
        )
        newer = [await insert(caller) for _ in range(2)][::-1]
        pages = 0

        async def commit_after_the_first_page() -> None:
            nonlocal pages
            pages += 1
            if pages == 1:
                await transaction.commit()

        assert await scan(caller, 1, commit_after_the_first_page) == [*newer, late["uuid"], older]
    finally:
        await slow.close()
