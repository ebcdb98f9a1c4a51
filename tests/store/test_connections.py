"""What a connection is asked by the driver itself."""

import asyncio

import asyncpg
import pytest

from app.store.connections import StoreConnection


async def _statements(connection: asyncpg.Connection, query: str, *arguments: object) -> tuple[object, list[str]]:
    """The query's value, and all that was sent for it."""
    sent: list[str] = []
    with connection.query_logger(lambda record: sent.append(record.query)):
        value = await connection.fetchval(query, *arguments)
    await asyncio.sleep(0)  # the logger is called soon, not at once
    return value, sent


@pytest.mark.parametrize("named", [True, False], ids=["named statements", "unnamed statements"])
async def test_a_type_is_looked_up_by_the_first_connection_alone(control_dsn: str, named: bool) -> None:
    cached = {"statement_cache_size": 100 if named else 0}
    query = "SELECT array_agg(one * 2 ORDER BY one) FROM unnest($1::bigint[]) AS one"
    for number in range(3):
        connection = await asyncpg.connect(control_dsn, connection_class=StoreConnection, **cached)
        try:
            doubled, sent = await _statements(connection, query, [3, 1, 2])
            assert doubled == [2, 4, 6]
            if number:
                assert len(sent) == 1
            # And again, by the statement that is prepared by now.
            assert (await _statements(connection, query, [1]))[0] == [2]
        finally:
            await connection.close()


async def test_a_type_of_ones_own_is_looked_up_by_each(control_dsn: str) -> None:
    for members in ("'red', 'green'", "'green', 'red'"):
        connection = await asyncpg.connect(control_dsn, connection_class=StoreConnection)
        try:
            await connection.execute(f"CREATE TYPE pg_temp.colour AS ENUM ({members})")
            value, sent = await _statements(connection, "SELECT array['red', 'green']::pg_temp.colour[]")
            assert value == ["red", "green"]
            assert len(sent) > 1
        finally:
            await connection.close()
