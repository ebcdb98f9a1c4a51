"""Prepared transactions, on servers that allow them: they outlive their session, and block DROP DATABASE."""

from collections.abc import Sequence
from typing import Any

from app.engines.naming import literal
from app.engines.postgres.connections import PostgresConnections

_OLD = """
SELECT gid, owner FROM pg_prepared_xacts
WHERE database = current_database() AND prepared <= clock_timestamp() - make_interval(secs => $1) LIMIT 10000
"""
_OF_ROLES = """
SELECT gid, owner FROM pg_prepared_xacts
WHERE database = current_database() AND owner = ANY($1::name[]) LIMIT 10000
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
        return await _end(inside, await inside.fetch(_OLD, seconds))


async def roll_back_of(inside: Any, roles: Sequence[str]) -> int:
    """Rolls back the transactions that these roles prepared in the database of the administrator's session, some at a
    time; returns how many. Nobody else could once a role is dropped."""
    return await _end(inside, await inside.fetch(_OF_ROLES, list(roles)))


async def _end(inside: Any, rows: Sequence[Any]) -> int:
    for row in rows:
        await inside.execute(f'SET ROLE "{row["owner"]}"')
        await inside.execute(f"ROLLBACK PREPARED {literal(row['gid'])}")
        await inside.execute("RESET ROLE")
    return len(rows)
