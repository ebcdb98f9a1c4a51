"""What a statement of the service reads, as PostgreSQL itself says after it has run it."""

import json
from typing import Any

import asyncpg

from app.store.session import fetch_all
from tests.model.test_page_plan import rows_read

PLANS = ("force_generic_plan", "force_custom_plan")
"""The values of `plan_cache_mode`: PostgreSQL settles on either."""


class Noted:
    """Stands for the store's `fetch_all`: runs statements as that does, and notes them."""

    def __init__(self) -> None:
        self._asked: list[tuple[str, tuple[Any, ...]]] = []

    async def __call__(self, kind: type[Any], statement: str, *given: Any) -> Any:
        self._asked.append((statement, given))
        return await fetch_all(kind, statement, *given)

    async def rows_read(self, connection: asyncpg.Connection, table: str) -> list[int]:
        """How many rows of the table each of the noted statements reads, which are forgotten with that."""
        # PostgreSQL rounds the rows of one of several loops.
        found = [round(await _rows_read(connection, table, *asked)) for asked in self._asked]
        self._asked.clear()
        return found


async def _rows_read(connection: asyncpg.Connection, table: str, statement: str, given: tuple[Any, ...]) -> float:
    await connection.execute(f"PREPARE asked AS {statement}")
    literals = ", ".join(map(_literal, given))
    (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked ({literals})")
    await connection.execute("DEALLOCATE asked")
    return rows_read(json.loads(row[0])[0]["Plan"], table)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "'{" + ",".join(map(str, value)) + "}'"
    return "NULL" if value is None else f"'{value}'"
