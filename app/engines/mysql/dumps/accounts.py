"""The short-lived accounts that read a tenant's database for a dump, or to compare a loaded one.

They are no tenant's: a revocation leaves them, because a paused or deleted database is dumped too. Each is used under a
named lock that lives as long as the session that took it, so a process that died holds up nobody.
"""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from app.engines.base import Tenant
from app.engines.dumping import DatabaseDropped
from app.engines.errors import EngineError
from app.engines.mysql import bookkeeping, removal
from app.engines.mysql.accounts import PURPOSES, account_name, helper_name
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
from app.engines.naming import HELPER_SEPARATOR

_RIGHTS = "SELECT, SHOW VIEW, TRIGGER, EXECUTE"
"""A dump has the right to EXECUTE because what it reads of routines is shown only to those who may execute them;
nothing is executed."""
BUSY_SECONDS = 5
LOCK_SECONDS = 5
"""How long a dump waits for a table that a tenant has locked."""
_SESSION = (
    "SET SESSION lock_wait_timeout = {seconds:d}, sql_mode = '', time_zone = '+00:00', "
    "net_read_timeout = 3600, net_write_timeout = 3600"
)


_ALL = "SELECT DISTINCT user FROM mysql.user WHERE SUBSTRING_INDEX(user, %s, -1) IN %s ORDER BY user"
_IS_FREE = "SELECT IS_FREE_LOCK(CONCAT(lock_name, '-', %s)) FROM headwater.tenants WHERE name = %s"
_TAKE = "SELECT GET_LOCK(CONCAT(lock_name, '-', %s), 0) FROM headwater.tenants WHERE name = %s"
_RELEASE = "SELECT RELEASE_LOCK(CONCAT(lock_name, '-', %s)) FROM headwater.tenants WHERE name = %s"


async def left_accounts(connection: MySQLConnection, names: Sequence[str], *, remove: bool) -> list[str]:
    """The accounts of dumps and loads of these tenants whose lock nobody has; with `remove`, removes them."""
    theirs, left = set(names), []
    for account in await _accounts(connection):
        name, _, purpose = account.partition(HELPER_SEPARATOR)
        if name in theirs and await connection.run(_IS_FREE, (purpose, name)) == [(1,)]:
            left.append(account)
    # One whose dump has just ended is gone by now.
    left = sorted(set(left).intersection(await _accounts(connection))) if left else []
    for account in left if remove else ():
        name, _, purpose = account.partition(HELPER_SEPARATOR)
        if await connection.run(_TAKE, (purpose, name)) == [(1,)]:
            await removal.end_dumps(connection, name, purpose)
            await connection.run(_RELEASE, (purpose, name))
    return left


async def _accounts(connection: MySQLConnection) -> list[str]:
    """The accounts of dumps and loads of all tenants."""
    rows = await connection.run(_ALL, (HELPER_SEPARATOR, list(PURPOSES)))
    return [str(user) for (user,) in rows]


async def refuse_dropped(administrator: MySQLConnection, tenant: Tenant) -> None:
    """Raises `DatabaseDropped` where all of the tenant is on this host but its database, which it may drop."""
    found = await bookkeeping.find_objects(administrator, tenant.name)
    remains = not found.database and tenant.name in found.accounts
    if remains and await bookkeeping.find_row(administrator, tenant) is not None:
        raise DatabaseDropped("there is no database any more: its tenant has dropped it")


@asynccontextmanager
async def reading_session(
    connections: MySQLConnections, administrator: MySQLConnection, tenant: Tenant, purpose: str
) -> AsyncIterator[MySQLConnection]:
    """A session that reads everything in the tenant's database and nothing else. Its account is removed with it,
    and what a process that died has left of the account is removed first. `administrator` is held for as long. Raises
    `EngineError` when another such session is open."""
    row = await bookkeeping.find_row(administrator, tenant)
    if row is None:
        raise EngineError(f"{tenant.name} is not on this host")
    lock = f"{row.lock_name}-{purpose}"
    # While rows are read, for hours maybe, it does nothing but hold the lock.
    await administrator.stay_open()
    if await administrator.run("SELECT GET_LOCK(%s, %s)", (lock, BUSY_SECONDS)) != [(1,)]:
        raise EngineError(f"{tenant.name} is being read by another {purpose} already")
    account = helper_name(tenant.name, purpose)
    password = secrets.token_urlsafe(24)
    await removal.end_dumps(administrator, tenant.name, purpose)
    identified = administrator.flavour.identified(password)
    thread = None
    try:
        await administrator.run(f"CREATE USER {account_name(account)} {identified}")
        await administrator.run(f"GRANT {_RIGHTS} ON `{tenant.name}`.* TO {account_name(account)}")
        session = await connections.helper(account, password, tenant.name)
        thread = session.thread_id()
        try:
            await session.run(_SESSION.format(seconds=LOCK_SECONDS))
            await session.stay_open()
            yield session
        finally:
            session.close()
    finally:
        # Else the next one does it, or `end_dumps`.
        with suppress(EngineError):
            async with connections.admin() as connection:
                await connection.run(f"DROP USER IF EXISTS {account_name(account)}")
                if thread is not None:
                    await _end(connection, thread)


async def _end(connection: MySQLConnection, thread: int) -> None:
    """Ends the session on the server, which notices that it was closed only when it sends rows to it: a statement may
    look for a row for hours. No other session gets its number."""
    with ignored(NO_SUCH_THREAD):
        await connection.run(f"KILL {thread:d}")
