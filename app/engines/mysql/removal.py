"""Ending a tenant's access, and removing the tenant."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pymysql

from app.engines.base import EngineError
from app.engines.mysql import bookkeeping, branches
from app.engines.mysql.accounts import account_name, dump_helpers, helper_name
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import DATABASE_GONE, LOCK_WAIT_TIMEOUT, NO_SUCH_DATABASE, NO_SUCH_TABLE, ignored
from app.engines.mysql.quoting import quote_name
from app.engines.mysql.sessions import end_present_sessions, end_sessions

OBSERVE_SECONDS = 0.15
_BATCH = 1000
TABLES_AT_ONCE = 100
"""Tables that are dropped by one statement."""
# Compared as bytes: two names that a collation takes as equal stay two.
_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND table_type NOT IN ('VIEW', 'SYSTEM VIEW') AND BINARY table_name > BINARY %s
ORDER BY BINARY table_name LIMIT %s
"""
_READ_ONLY = """
SELECT 1 FROM information_schema.schemata_extensions WHERE schema_name = %s AND options LIKE '%%READ ONLY=1%%'
"""


async def end_access(connection: MySQLConnection, connections: MySQLConnections, name: str) -> None:
    """Ends logins, privileges, sessions, and the prepared branches that are known to be the tenant's. Raises
    `EngineError` when a session doesn't end."""
    found = await bookkeeping.find_objects(connection, name)
    for account in found.accounts:
        if account not in dump_helpers(name):
            await connection.run(f"ALTER USER {account_name(account)} ACCOUNT LOCK")
    if name in found.accounts:
        await connection.run(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account_name(name)}")
    # Only now: an open session keeps its rights, and a client that may still log in comes back.
    transactions = await end_sessions(connection, connections, name)
    transactions |= await branches.transactions_in_database(connection, name)
    await branches.roll_back_what_is_known(connection, connections, name, transactions)


async def end_dumps(connection: MySQLConnection, name: str, *purposes: str) -> int:
    """Removes the accounts of dumps, by default of all purposes, and ends their sessions. Returns how many there
    were."""
    wanted = {helper_name(name, purpose) for purpose in purposes} or dump_helpers(name)
    found = wanted.intersection((await bookkeeping.find_objects(connection, name)).accounts)
    for account in sorted(found):
        await connection.run(f"DROP USER IF EXISTS {account_name(account)}")
        await end_present_sessions(connection, account, helpers=False)
    return len(found)


async def remove(connection: MySQLConnection, connections: MySQLConnections, name: str) -> None:
    """Ends the tenant's access and removes the tenant, its database before its accounts: without them, views and
    routines would have no definer."""
    await end_access(connection, connections, name)
    await end_dumps(connection, name)
    await drop_database(connection, connections, name)
    for account in (await bookkeeping.find_objects(connection, name)).accounts:
        await connection.run(f"DROP USER IF EXISTS {account_name(account)}")


async def lift_read_only(connection: MySQLConnection, name: str) -> None:
    """Makes a read-only database writable again. A tenant may make its own read-only; then nobody can delete from it or
    drop it. A writable one is left alone: the statement would wait for every transaction that has used it, a dump's
    among them."""
    statement = connection.flavour.lift_read_only
    if statement is not None and await _is_read_only(connection, name):
        with ignored(NO_SUCH_DATABASE), ignored(DATABASE_GONE):
            await connection.run(statement.format(name=name))


async def _is_read_only(connection: MySQLConnection, name: str) -> bool:
    with ignored(NO_SUCH_TABLE):  # before MySQL 8.0.22 there is no such thing
        return bool(await connection.run(_READ_ONLY, (name,)))
    return False


async def drop_database(connection: MySQLConnection, connections: MySQLConnections, name: str) -> None:
    """Drops the database. Where its tables stay locked, rolls back the prepared branches that lock them. Raises
    `EngineError` if a holder can't be found."""
    if await _dropped_in_parts(connection, name):
        return
    async with connections.extra() as dropper, connections.extra() as observer:
        holders = await _drop_tables(dropper, observer, name)
        rolled_back = await branches.roll_back_all_of(observer, connections, holders)
    if not (rolled_back and await _dropped(connection, name)):
        raise EngineError(
            f"something holds tables of {name}, most likely a prepared XA branch, and with others prepared on this "
            "server nobody knows which is whose. XA RECOVER lists them: commit or roll back those that are over."
        )


async def _dropped_in_parts(connection: MySQLConnection, name: str) -> bool:
    """As `_dropped`, but with no statement that takes longer the more tables there are: each drops only some, so that
    an attempt that is broken off leaves less to do. Returns False if a table is locked: the rest is left to whatever
    finds the holder."""
    with ignored(LOCK_WAIT_TIMEOUT):
        await lift_read_only(connection, name)
        part: list[str] = []
        async for table in _tables(connection, name):
            part.append(table)
            if len(part) == TABLES_AT_ONCE:
                await _drop_some(connection, name, part)
                part.clear()
        return await _dropped(connection, name)
    return False


async def _drop_some(connection: MySQLConnection, name: str, tables: Sequence[str]) -> None:
    named = ", ".join(f"`{name}`.{quote_name(table)}" for table in tables)
    await connection.run("SET SESSION foreign_key_checks = 0")
    try:
        await connection.run(f"DROP TABLE IF EXISTS {named}")
    finally:
        await connection.run("SET SESSION foreign_key_checks = DEFAULT")


async def _dropped(connection: MySQLConnection, name: str) -> bool:
    """Drops the database; returns False if its tables are locked. MySQL 9 waits for locks even to end read-only
    mode."""
    with ignored(LOCK_WAIT_TIMEOUT):
        await lift_read_only(connection, name)
        await connection.run(f"DROP DATABASE IF EXISTS `{name}`")
        return True
    return False


async def _drop_tables(dropper: MySQLConnection, observer: MySQLConnection, name: str) -> set[int]:
    """Drops the tables one by one, and returns the transactions that lock some. DROP DATABASE would stop at the first
    of them."""
    await dropper.run("SET SESSION foreign_key_checks = 0, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
    holders: set[int] = set()
    async for table in _tables(dropper, name):
        holders |= await _holders(dropper, observer, name, f"DROP TABLE IF EXISTS `{name}`.{quote_name(table)}")
    return holders


async def _tables(connection: MySQLConnection, name: str) -> AsyncIterator[str]:
    """The names of the database's tables, read some at a time: there may be millions."""
    last: str | None = ""
    while last is not None:
        rows = await connection.run(_TABLES, (name, last, _BATCH))
        for (table,) in rows:
            yield table
        last = rows[-1][0] if len(rows) == _BATCH else None


async def _ran_unblocked(connection: MySQLConnection, statement: str) -> bool:
    try:
        await connection.run(statement)
    except pymysql.MySQLError as error:
        if error.args[:1] != (LOCK_WAIT_TIMEOUT,):
            raise
        return False
    return True


async def _holders(connection: MySQLConnection, observer: MySQLConnection, name: str, statement: str) -> set[int]:
    """Runs the statement; returns the transactions that it had to wait for."""
    holders: set[int] = set()
    waiting = asyncio.create_task(_ran_unblocked(connection, statement))
    try:
        while not (await asyncio.wait({waiting}, timeout=OBSERVE_SECONDS))[0]:
            holders |= await branches.transactions_holding_up(observer, connection.thread_id())
            holders |= await branches.transactions_in_database(observer, name)
    finally:
        await waiting
    return holders
