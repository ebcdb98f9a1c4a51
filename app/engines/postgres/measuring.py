"""Measuring tenants on a PostgreSQL server. A database's size includes all its files: tables, indexes, large
objects, and its system catalogs, which hold the bodies of functions, views and comments."""

from collections.abc import Sequence
from typing import Any

from app.engines.base import Measuring, Usage
from app.engines.postgres.catalog import ACCOUNT_KIND
from app.engines.postgres.errors import translated

_MEASURE = f"""
SELECT d.datname, pg_database_size(d.oid) AS storage_bytes,
       (SELECT count(*) FROM pg_stat_activity a
        WHERE a.datid = d.oid AND {ACCOUNT_KIND.format("d.datname", "a.usename")} IS NOT NULL) AS connections
FROM pg_database d WHERE d.datname = ANY($1::name[])
"""  # noqa: S608  constants


class PostgresMeasuring(Measuring):
    """The server inspects each file of a database, so that one with millions of tables takes seconds."""

    def __init__(self, connection: Any, host: str) -> None:
        self._connection = connection
        self._host = host

    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        with translated(self._host):
            async with self._connection.transaction(readonly=True):
                await self._connection.execute(f"SET LOCAL statement_timeout = {max(1, int(1000 * seconds))}")
                rows = await self._connection.fetch(_MEASURE, list(names))
        return {
            row["datname"]: Usage(storage_bytes=row["storage_bytes"] or 0, connections=row["connections"])
            for row in rows
        }
