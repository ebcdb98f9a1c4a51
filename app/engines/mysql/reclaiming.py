"""Reclaiming the space of deleted rows in a frozen tenant's tables.

A DELETE doesn't shorten the file. Rebuilding the table does; it needs the right to INSERT, which a frozen tenant lacks,
so the administrator does it. A rebuild runs none of the tenant's code: no trigger fires, and the engines allow no
stored function in generated columns.
"""

import time

from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.quoting import quote_name

WORTH_BYTES = 4 * 2**20
"""InnoDB counts free space in extents, and leaves a few free in every file."""
_LOOSE = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND table_type = 'BASE TABLE' AND engine = 'InnoDB'
  AND data_free >= %s AND data_free * 4 >= data_length + index_length
ORDER BY data_free DESC LIMIT 100
"""
_ENOUGH_SECONDS = 30
"""No further table is begun after this time, because other work on the tenant has to wait."""


async def reclaim(connection: MySQLConnection, name: str) -> None:
    """Rebuilds tables of which a fifth or more is free, some at a time; the next call continues with others."""
    if connection.flavour.cached_statistics:
        await connection.run("SET SESSION information_schema_stats_expiry = 0")
    deadline = time.monotonic() + _ENOUGH_SECONDS
    for (table,) in await connection.run(_LOOSE, (name, WORTH_BYTES)):
        if time.monotonic() > deadline:
            break
        await connection.run(f"OPTIMIZE TABLE `{name}`.{quote_name(table)}")
