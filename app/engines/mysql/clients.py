"""Whether a server's clients are at work, so that the service's own work can give way to them."""

from app.engines.mysql.accounts import PURPOSES
from app.engines.mysql.connection import MySQLConnection
from app.engines.naming import HELPER_SEPARATOR

# Who waits for a lock, or sleeps, needs no processor; who waits for a table of this database may wait for the dump,
# which is sooner over at full speed. A session that rests shows since when, in whole seconds.
_AT_WORK = """
SELECT COALESCE(MAX(p.time < 1 OR p.command <> 'Sleep' AND p.state NOT LIKE 'Waiting for %%'
                    AND p.state NOT LIKE 'User %%'), 0)
       AND NOT COALESCE(MAX(p.db = %s AND p.state = 'Waiting for table metadata lock'), 0)
FROM information_schema.processlist p
WHERE p.user NOT IN (SUBSTRING_INDEX(USER(), '@', 1), 'system user', 'event_scheduler', 'unauthenticated user')
  AND SUBSTRING_INDEX(p.user, %s, -1) NOT IN %s
  AND p.command NOT IN ('Daemon', 'Connect', 'Quit', 'Binlog Dump', 'Binlog Dump GTID')
"""


async def at_work(connection: MySQLConnection, database: str) -> bool:
    [(found,)] = await connection.run(_AT_WORK, (database, HELPER_SEPARATOR, list(PURPOSES)))
    return bool(found)
