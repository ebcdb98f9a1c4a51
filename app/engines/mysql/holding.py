"""Tenants that get fewer connections than their limit while their server is short of them.

A row is written before the first account is lowered, and goes after the last one has its limit again: the server shows
nobody but root which limit an account has.
"""

from app.engines.base import HeldLimits, SessionCounts
from app.engines.mysql import bookkeeping, shares
from app.engines.mysql.accounts import account_name, dump_helpers
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
from app.engines.mysql.readers import reader_name
from app.engines.mysql.sessions import LOGGING_IN
from app.engines.naming import HELPER_SEPARATOR

# A login that isn't finished is nobody's, and takes one of the server's connections like any other.
_COUNTS = f"""
SELECT IF({LOGGING_IN}, '?', SUBSTRING_INDEX(user, %s, 1)), COUNT(*) FROM information_schema.processlist
WHERE user NOT IN ('system user', 'event_scheduler') AND user <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1) GROUP BY 1
"""  # noqa: S608  constants
_SESSIONS = f"""
SELECT id, user FROM information_schema.processlist WHERE (user = %s OR LEFT(user, %s) = %s) AND NOT {LOGGING_IN}
ORDER BY command = 'Sleep' DESC, time DESC, id
"""  # noqa: S608  constants


async def counts(connection: MySQLConnection) -> SessionCounts:
    rows = await connection.run(_COUNTS, (HELPER_SEPARATOR,))
    [(limit,)] = await connection.run("SELECT @@GLOBAL.max_connections")
    return SessionCounts(limit=int(limit), by_name={str(name): int(sessions) for name, sessions in rows})


async def hold(connection: MySQLConnection, name: str, limits: HeldLimits) -> None:
    accounts = (await bookkeeping.find_objects(connection, name)).accounts
    if limits.at_most is not None and accounts:
        await bookkeeping.write_held(connection, name, limits.at_most)
    rows = await bookkeeping.find_users(connection, name)
    for account in accounts:
        removed = account in rows and rows[account].removed
        connections = limits.own if account == name else limits.of_user(account)
        if connections is not None and not removed:
            await connection.run(f"ALTER USER {account_name(account)} {shares.limit(connections)}")
    if limits.at_most is None:
        await bookkeeping.delete_held(connection, name)


async def end_surplus(connection: MySQLConnection, name: str, keep: int) -> int:
    rows = await connection.run(_SESSIONS, (name, len(name) + 1, name + HELPER_SEPARATOR))
    ours = {reader_name(name), *dump_helpers(name)}
    chosen = [int(number) for number, user in rows if user not in ours]
    chosen = chosen[: max(0, len(chosen) - keep)]
    for number in chosen:
        with ignored(NO_SUCH_THREAD):
            await connection.run(f"KILL {number:d}")
    return len(chosen)
