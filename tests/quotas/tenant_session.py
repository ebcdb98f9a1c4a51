"""A tenant's own connection, of either engine, from the `data` of a create's answer."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.e2e.hosts import mysql, postgres

LOADED = {
    # So short a row goes as it is: TOAST would compress a longer one away.
    "postgres": "INSERT INTO loaded SELECT repeat(md5(random()::text), 32) FROM generate_series(1, {rows})",
    "mysql": "INSERT INTO loaded WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
    "SELECT REPEAT(SHA2(RAND(), 256), 16) FROM n a JOIN (SELECT i FROM n WHERE i <= {rows} / 1000) b",
}
"""Fills `loaded (t text)` with as many KiB as rows."""


class Session:
    def __init__(self, connection: Any, engine: str) -> None:
        self._connection = connection
        self._engine = engine

    async def run(self, statement: str) -> None:
        await self._connection.execute(statement)

    async def value(self, statement: str) -> Any:
        if self._engine == "postgres":
            return await self._connection.fetchval(statement)
        await self._connection.execute(statement)
        return (await self._connection.fetchone())[0]

    async def load(self, megabytes: int) -> None:
        await self.run("CREATE TABLE IF NOT EXISTS loaded (t text)")
        await self.run(LOADED[self._engine].format(rows=megabytes * 1024))


@asynccontextmanager
async def session_of(made: Mapping[str, Any]) -> AsyncIterator[Session]:
    engine = made["db_type"]
    async with (postgres if engine == "postgres" else mysql)(made["connection_string"]) as connection:
        yield Session(connection, engine)


async def refused(made: Mapping[str, Any], *statements: str) -> bool:
    """Whether the login or one of the statements fails."""
    try:
        async with session_of(made) as session:
            for statement in statements:
                await session.run(statement)
    except Exception:
        return True
    return False
