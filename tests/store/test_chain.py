"""Several statements as one: each on the condition that the one before it returned a row, and all of it or nothing."""

import asyncpg
import pytest

from app.store.session import Statement, execute, execute_chain, fetch, fetch_values

_ADD = "INSERT INTO teams (name, tier) SELECT $1, $2 WHERE {condition} RETURNING id"
_RENAME = "UPDATE teams SET name = $1 WHERE name = $2 AND {condition} RETURNING id"


def add(name: str, tier: str = "free") -> Statement:
    return Statement(_ADD, (name, tier))


def rename(before: str, after: str) -> Statement:
    return Statement(_RENAME, (after, before))


async def names() -> list[str]:
    return await fetch_values(str, "SELECT name FROM teams ORDER BY name")


async def test_each_step_has_its_own_parameters(own_store: None) -> None:
    steps = [add(f"team {number:02}", "pro") for number in range(12)]
    assert await execute_chain(*steps) == 12
    assert await names() == [f"team {number:02}" for number in range(12)]
    assert await fetch_values(str, "SELECT DISTINCT tier FROM teams") == ["pro"]


async def test_it_is_one_transaction(own_store: None) -> None:
    await execute_chain(add("a"), add("b"))
    assert len(await fetch("SELECT DISTINCT xmin::text FROM teams")) == 1


async def test_nothing_follows_a_step_without_a_row(own_store: None) -> None:
    await execute("INSERT INTO teams (name, tier) VALUES ('a', 'free')")
    assert await execute_chain(rename("a", "b"), rename("nobody", "c"), add("d"), add("e")) == 1
    assert await names() == ["b"]
    assert await execute_chain(rename("nobody", "c"), rename("b", "d")) == 0
    assert await names() == ["b"]


async def test_an_error_in_a_later_step_takes_back_the_earlier_ones(own_store: None) -> None:
    broken = Statement("INSERT INTO teams (name) SELECT (1 / $1::int)::text WHERE {condition} RETURNING id", (0,))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await execute_chain(add("a"), broken)
    assert await names() == []


async def test_one_alone(own_store: None) -> None:
    assert await execute_chain(add("a")) == 1
    assert await names() == ["a"]
