"""Tables in the server's own file, which tell no size of a file: what their databases hold, as the server estimates it.

Every tenant of MySQL may make them, and hold them locked for as long as it likes. The measurement of all others waits
for neither.
"""

from collections.abc import Callable, Sequence

import pymysql

from app.engines.base import EngineError
from app.engines.mysql.connections import MySQLConnection
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT, TIMED_OUT
from app.engines.mysql.sessions import end_present_sessions

_PATIENCE_SECONDS = 1
"""For the tables of one database, and again when the sessions that held them were ended."""
# TABLESPACE=innodb_system asks for no privilege. InnoDB's own list of tables would tell where each lies, and waits for
# those that are just being made; so these are the ones without a file of their own. Exactly, or a table of almost the
# same name would hide another.
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
# Of every engine, so that what has a file of its own needn't be told apart.
_SIZES = """
SELECT SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema = %s AND table_type = 'BASE TABLE'
"""
# A tenant may turn off the statistics that these sizes come from. Some at a time: it may have made thousands.
_UNCOUNTED = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND engine = 'InnoDB' AND LOCATE('stats_auto_recalc=0', create_options) > 0
ORDER BY RAND() LIMIT 5
"""


async def find(connection: MySQLConnection, names: Sequence[str]) -> frozenset[str]:
    """The databases that have such a table."""
    return frozenset(name for (name,) in await connection.run(_FIND, ([*names], [*names])))


async def estimate(connection: MySQLConnection, name: str, left: Callable[[], float]) -> int:
    """Bytes of all that the database holds. `left` are the seconds that it may take; raises `EngineError` when there
    are none, or when its tables stay locked though the sessions that held them were ended."""
    await connection.run("SET SESSION information_schema_stats_expiry = 0")
    for _ in range(2):
        patience = min(left(), _PATIENCE_SECONDS)
        await connection.run(f"SET SESSION {connection.flavour.time_limit(patience)}")
        try:
            for (table,) in await connection.run(_UNCOUNTED, (name,)):
                quoted = table.replace("`", "``")
                await connection.run(f"ANALYZE NO_WRITE_TO_BINLOG TABLE `{name}`.`{quoted}`")
            [(octets,)] = await connection.run(_SIZES, (name,))
        except pymysql.MySQLError as error:
            if error.args[0] not in (LOCK_WAIT_TIMEOUT, TIMED_OUT):
                raise
            await end_present_sessions(connection, name)
        else:
            return int(octets or 0)
    raise EngineError(f"what {name} has in the server's own file can't be measured")
