"""The size of databases with tables in the server's shared files, which have no file size of their own, as the server
estimates it.

Any tenant of MySQL can create such tables, and lock them for as long as it likes. The measurement of the others waits
for neither.
"""

from collections.abc import Callable, Sequence

import pymysql

from app.engines.base import EngineError
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT, TIMED_OUT
from app.engines.mysql.quoting import quote_name
from app.engines.mysql.sessions import end_present_sessions

_PATIENCE_SECONDS = 1
"""How long the tables of one database are waited for, and once more after the sessions that lock them were ended."""
# TABLESPACE=innodb_system needs no privilege. InnoDB's own list of tables shows where each is, but waits for tables
# that are being created; so this finds the tables without a file of their own. Compared exactly, or a table of almost
# the same name would hide another.
_FIND = """
SELECT DISTINCT t.table_schema FROM information_schema.tables t
LEFT JOIN (SELECT CAST(name AS BINARY) AS name FROM information_schema.innodb_tablespaces) f
       ON f.name = CAST(CONCAT(t.table_schema, '/', t.table_name) AS BINARY)
LEFT JOIN (
    SELECT DISTINCT table_schema, table_name FROM information_schema.partitions
    WHERE table_schema IN %s AND partition_name IS NOT NULL
) p ON p.table_schema = t.table_schema AND p.table_name = t.table_name
WHERE t.table_schema IN %s AND t.table_type = 'BASE TABLE' AND t.engine = 'InnoDB'
  AND f.name IS NULL AND p.table_name IS NULL
"""
# Of every engine, so that tables with their own file needn't be excluded.
_SIZES = """
SELECT SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema = %s AND table_type = 'BASE TABLE'
"""
# A tenant may turn off the statistics behind these sizes. Some at a time: it may have created thousands.
_UNCOUNTED = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND engine = 'InnoDB' AND LOCATE('stats_auto_recalc=0', create_options) > 0
ORDER BY RAND() LIMIT 5
"""


async def find(connection: MySQLConnection, names: Sequence[str]) -> frozenset[str]:
    """The databases that have a table in a shared file."""
    return frozenset(name for (name,) in await connection.run(_FIND, ([*names], [*names])))


async def estimate(connection: MySQLConnection, name: str, left: Callable[[], float]) -> int:
    """The size of the whole database in bytes. `left` are the seconds that it may take. Raises `EngineError` when
    there are none left, or when tables stay locked although the sessions that locked them were ended."""
    await connection.run("SET SESSION information_schema_stats_expiry = 0")
    for _ in range(2):
        patience = min(left(), _PATIENCE_SECONDS)
        await connection.run(f"SET SESSION {connection.flavour.time_limit(patience)}")
        try:
            for (table,) in await connection.run(_UNCOUNTED, (name,)):
                await connection.run(f"ANALYZE NO_WRITE_TO_BINLOG TABLE `{name}`.{quote_name(table)}")
            [(octets,)] = await connection.run(_SIZES, (name,))
        except pymysql.MySQLError as error:
            if error.args[0] not in (LOCK_WAIT_TIMEOUT, TIMED_OUT):
                raise
            await end_present_sessions(connection, name)
        else:
            return int(octets or 0)
    raise EngineError(f"what {name} has in the server's own file can't be measured")
