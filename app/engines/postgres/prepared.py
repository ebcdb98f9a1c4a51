"""Prepared transactions, on servers that allow them: they outlive their session, and block DROP DATABASE."""

from typing import Any

from app.engines.naming import literal
from app.engines.postgres.connections import PostgresConnections

_OLD = """
SELECT gid, owner FROM pg_prepared_xacts
WHERE database = current_database() AND prepared <= clock_timestamp() - make_interval(secs => $1) LIMIT 10000
"""


async def roll_back(connection: Any, connections: PostgresConnections, name: str) -> None:
    """Rolls back all prepared transactions in this database, whose roles may no longer log in.

    Only their owner or a superuser may do that, and only from inside the database, so the database accepts connections
    again; the caller drops it next.
    """
    if not await connection.fetchval("SELECT count(*) FROM pg_prepared_xacts WHERE database = $1", name):
        return
    await connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    await roll_back_old(connections, name, 0)


async def roll_back_old(connections: PostgresConnections, name: str, seconds: float) -> int:
    """Rolls back the transactions of this database that were prepared more than `seconds` ago, some at a time;
    returns how many."""
    async with connections.admin_in(name) as inside:
        rows = await inside.fetch(_OLD, seconds)
        for row in rows:
            await inside.execute(f'SET ROLE "{row["owner"]}"')
            await inside.execute(f"ROLLBACK PREPARED {literal(row['gid'])}")
            await inside.execute("RESET ROLE")
    return len(rows)
