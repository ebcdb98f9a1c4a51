"""Transactions: all of it or nothing, blocks within blocks, and rows as structs."""

import asyncio
import contextlib

import msgspec
import pytest

from app.core.context import Actor, ActorKind, actor
from app.store.session import (
    connected,
    execute,
    fetch,
    fetch_all,
    fetch_exists,
    fetch_one,
    fetch_value,
    fetch_values,
    raw_connection,
    transaction,
)
from tests.servers import RunningServer
from tests.support.store import POOL, new_database, store
from tests.support.waiting import LIMIT_SECONDS


class _Team(msgspec.Struct):
    name: str
    tier: str


async def add(name: str) -> None:
    await fetch("INSERT INTO teams (name, tier) VALUES ($1, 'free')", name)


async def names() -> list[str]:
    return [row["name"] for row in await fetch("SELECT name FROM teams ORDER BY id")]


async def test_an_error_takes_everything_back(own_store: None) -> None:
    with contextlib.suppress(LookupError):
        async with transaction():
            await add("a")
            async with transaction():
                await add("b")
            raise LookupError
    assert await names() == []


async def test_a_block_inside_a_block_is_the_same_transaction(own_store: None) -> None:
    async with transaction():
        (outer,) = await fetch("SELECT txid_current() AS id")
        async with transaction():
            assert await fetch("SELECT txid_current() AS id") == [outer]
        await add("a")
    assert await names() == ["a"]


async def test_what_is_not_committed_is_not_seen(own_store: None) -> None:
    inside, checked = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with transaction():
            await add("a")
            inside.set()
            await checked.wait()

    writing = asyncio.create_task(write())
    await inside.wait()
    assert await names() == []
    checked.set()
    await writing
    assert await names() == ["a"]


async def test_a_cancelled_transaction_is_rolled_back(own_store: None) -> None:
    inside = asyncio.Event()

    async def write() -> None:
        async with transaction():
            await add("a")
            inside.set()
            await asyncio.Event().wait()

    writing = asyncio.create_task(write())
    await inside.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await names() == []


async def test_one_user_leaves_connections_to_others(own_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many statements of theirs take long."""
    # On a crowded machine too they wait for longer than the test takes.
    monkeypatch.setattr("app.store.session.ACQUIRE_SECONDS", LIMIT_SECONDS)
    let_go = asyncio.Event()

    async def hold() -> None:
        actor.set(Actor(kind=ActorKind.KEY, user_id=1))
        async with transaction():
            await let_go.wait()

    async def ask() -> int | None:
        actor.set(Actor(kind=ActorKind.KEY, user_id=2))
        return await fetch_value(int, "SELECT 1")

    async with asyncio.TaskGroup() as group:
        for _ in range(POOL):
            group.create_task(hold())
        assert await group.create_task(ask()) == 1
        let_go.set()


async def test_rows_as_structs(own_store: None) -> None:
    assert await fetch_one(_Team, "SELECT name, tier FROM teams") is None
    await add("a")
    await add("b")
    assert await fetch_one(_Team, "SELECT name, tier FROM teams ORDER BY id") == _Team("a", "free")
    assert await fetch_all(_Team, "SELECT name, tier FROM teams ORDER BY id DESC") == [
        _Team("b", "free"),
        _Team("a", "free"),
    ]


async def test_values_have_the_type_that_is_asked_for(own_store: None) -> None:
    for name in ("a", "b"):
        await add(name)
    assert await fetch_values(str, "SELECT name FROM teams ORDER BY id") == ["a", "b"]
    assert await fetch_value(int, "SELECT count(*) FROM teams") == 2
    assert await fetch_value(str, "SELECT name FROM teams WHERE name = 'c'") is None
    assert await fetch_value(str, "SELECT NULL::text") is None
    with pytest.raises(msgspec.ValidationError):
        await fetch_value(int, "SELECT name FROM teams")


async def test_a_statement_says_how_many_rows_it_wrote(own_store: None) -> None:
    assert await execute("INSERT INTO teams (name, tier) SELECT n, 'free' FROM unnest($1::text[]) n", ["a", "b"]) == 2
    with contextlib.suppress(LookupError):
        async with transaction():
            assert await execute("UPDATE teams SET tier = 'pro'") == 2
            assert await execute("DELETE FROM teams WHERE name = $1", "c") == 0
            raise LookupError
    assert not await fetch_exists("SELECT 1 FROM teams WHERE tier = 'pro'")
    assert await fetch_exists("SELECT 1 FROM teams WHERE name = $1", "a")


async def test_a_connection_that_is_never_given_back_does_not_keep_the_process_from_ending(control_dsn: str) -> None:
    inside = asyncio.Event()

    async def hold() -> None:
        async with raw_connection():
            inside.set()
            await asyncio.Event().wait()

    async with connected(control_dsn, close_seconds=0.1):
        holding = asyncio.create_task(hold())
        await inside.wait()
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)


async def test_a_connection_goes_back_to_the_pool_that_it_came_from(
    own_store: None, control_server: RunningServer
) -> None:
    inside, over = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with raw_connection():
            inside.set()
            await over.wait()

    holding = asyncio.create_task(hold())
    await inside.wait()
    async with store(await new_database(control_server.admin_dsn)):
        over.set()
        await holding
