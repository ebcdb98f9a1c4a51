"""Giving back what deletions left inside a frozen tenant's tables.

A DELETE leaves the file as long as it was. Rebuilding the table shortens it, and takes the right to INSERT, which a
frozen tenant lacks. The rebuild runs none of the tenant's code: no trigger fires, and the engines allow no stored
function in what a table computes.
"""

import time

from app.engines.mysql.connections import MySQLConnection

WORTH_BYTES = 4 * 2**20
"""InnoDB counts free space in extents, and leaves a few in every file."""
_LOOSE = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND table_type = 'BASE TABLE' AND engine = 'InnoDB'
  AND data_free >= %s AND data_free * 4 >= data_length + index_length
ORDER BY data_free DESC LIMIT 100
"""
_ENOUGH_SECONDS = 30
"""After which no other table is begun: nobody else works on the tenant meanwhile."""


async def reclaim(connection: MySQLConnection, name: str) -> None:
    """Rebuilds the tables of which a fifth or more is free, some at a time: the next call goes on with others."""
    if connection.flavour.cached_statistics:
        await connection.run("SET SESSION information_schema_stats_expiry = 0")
    deadline = time.monotonic() + _ENOUGH_SECONDS
    for (table,) in await connection.run(_LOOSE, (name, WORTH_BYTES)):
        if time.monotonic() > deadline:
            break
        quoted = table.replace("`", "``")
        await connection.run(f"OPTIMIZE TABLE `{name}`.`{quoted}`")
