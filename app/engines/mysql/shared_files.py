"""Tables in the server's own file, which tell no size of a file: what their databases hold, as the server estimates it.

Every tenant of MySQL may make them, and hold them locked for as long as it likes. The measurement of all others waits
for neither.
"""

import random
from collections.abc import Sequence

import pymysql
import structlog

from app.engines.mysql.connections import Connection
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT, TIMED_OUT
from app.engines.mysql.sessions import end_present_sessions

_PATIENCE_SECONDS = 1
"""For the tables of one database, and again when the sessions that held them were ended."""
_MOST = 5
"""Databases that are estimated by themselves in one look, others each time where there are more."""
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
log = structlog.get_logger(__name__)


async def estimates(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    """Bytes of all that the databases hold which have such a table."""
    schemas = [name for (name,) in await connection.run(_FIND, ([*names], [*names]))]
    if not schemas:
        return {}
    random.shuffle(schemas)
    await connection.run(
        f"SET SESSION information_schema_stats_expiry = 0, max_execution_time = {1000 * _PATIENCE_SECONDS}"
    )
    found = {name: await _estimate(connection, name) for name in schemas[:_MOST]}
    await connection.run("SET SESSION max_execution_time = 0")
    return {name: octets for name, octets in found.items() if octets is not None}


async def _estimate(connection: Connection, name: str) -> int | None:
    for _ in range(2):
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
    log.warning("shared_tables_not_measured", tenant=name)
    return None
