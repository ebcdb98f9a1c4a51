"""Further accounts of a tenant, beside the one that has its name.

A view, routine or trigger runs with the rights of its definer, the account that made it, and fails without it; a
trigger takes every write to its table along. So an account that has defined something outlives its removal: locked,
with a password that nobody knows, until what it has defined is gone.
"""

import secrets
from functools import partial

import msgspec
import pymysql

from app.engines.base import Access, EngineError, Login
from app.engines.mysql import bookkeeping, branches, shares
from app.engines.mysql.accounts import account_name, dump_helpers
from app.engines.mysql.blockers import ending_blockers
from app.engines.mysql.bookkeeping import FreezeState, UserRow
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import MARIADB_TIMED_OUT, STILL_DEFINER, TIMED_OUT
from app.engines.mysql.grants import grant
from app.engines.mysql.readers import reader_name
from app.engines.mysql.sessions import count_sessions, end_present_sessions, end_sessions

MAX_ACCOUNTS = 100
"""The most accounts of one tenant, including those that are kept only for what they have defined: every account is in
the server's memory."""
_DEFINERS_SECONDS = 10
_DEFINERS = """
SELECT definer FROM information_schema.views WHERE table_schema = %s
UNION SELECT definer FROM information_schema.routines WHERE routine_schema = %s
UNION SELECT definer FROM information_schema.triggers WHERE trigger_schema = %s
"""


async def put(connection: MySQLConnection, name: str, login: Login, *, revoked: bool) -> None:
    """Makes the account of the tenant `name`, or corrects it. Raises `EngineError` when the tenant has too many."""
    users = await bookkeeping.find_users(connection, name)
    before = users.get(login.name)
    accounts = (await bookkeeping.find_objects(connection, name)).accounts
    if login.name not in accounts and len(accounts) >= MAX_ACCOUNTS:
        await _drop_unused(connection, name, users)
        accounts = (await bookkeeping.find_objects(connection, name)).accounts
        if len(accounts) >= MAX_ACCOUNTS:
            raise EngineError(
                f"{name} has {MAX_ACCOUNTS} accounts, the most that a database may have. Accounts of removed users "
                "stay for the views, routines and triggers that they have made: make those again as another user."
            )
    row = UserRow(access=login.access, connections=login.connections or 1)
    # What it may do already counts until its sessions have lost it.
    held = row.access if before is None or before.removed else before.access
    await bookkeeping.write_user(connection, login.name, msgspec.structs.replace(row, access=held))
    await shares.share_out(connection, name)
    exists = login.name in accounts
    await connection.run(
        f"{'ALTER' if exists else 'CREATE'} USER {account_name(login.name)} "
        f"{connection.flavour.identified(login.password)} {shares.limit(row.connections)} "
        f"ACCOUNT {'LOCK' if revoked else 'UNLOCK'}"
    )
    frozen = await bookkeeping.freeze_state(connection, name) is not FreezeState.NONE
    await grant(connection, name, login.name, login.access, frozen=frozen, new=not exists)
    if held is not row.access:
        # A session keeps the rights that it had when it selected its database, also if it fails to change its account.
        await end_present_sessions(connection, login.name, helpers=False, logging_in=True)
        await bookkeeping.write_user(connection, login.name, row)


async def remove(connection: MySQLConnection, connections: MySQLConnections, name: str, user: str) -> None:
    """Ends the account's logins and sessions, and drops it unless something needs it as its definer. Also drops the
    accounts that were kept so far and that nothing needs any more."""
    users = await bookkeeping.find_users(connection, name)
    if user in (await bookkeeping.find_objects(connection, name)).accounts:
        row = users.get(user, UserRow(access=Access.READ_ONLY, connections=0))
        # First, or a restore would open it again.
        users[user] = msgspec.structs.replace(row, removed=True)
        await bookkeeping.write_user(connection, user, users[user])
        unknown = connection.flavour.identified(secrets.token_urlsafe(32))
        await connection.run(f"ALTER USER {account_name(user)} {unknown} ACCOUNT LOCK")
        transactions = await end_sessions(connection, connections, user, helpers=False)
        await branches.roll_back_what_is_known(connection, connections, name, transactions)
    elif user in users:
        users[user] = msgspec.structs.replace(users[user], removed=True)
    await _drop_unused(connection, name, users)


async def open_sessions(connection: MySQLConnection, name: str) -> dict[str, int]:
    """The number of open sessions by account, without removed accounts and the service's own."""
    accounts = (await bookkeeping.find_objects(connection, name)).accounts
    users = await bookkeeping.find_users(connection, name)
    sessions = await count_sessions(connection, name)
    hidden = {reader_name(name), *dump_helpers(name), *(user for user, row in users.items() if row.removed)}
    return {account: sessions.get(account, 0) for account in accounts if account not in hidden}


async def _drop_unused(connection: MySQLConnection, name: str, users: dict[str, UserRow]) -> None:
    removed = [user for user, row in users.items() if row.removed]
    needed = await _definers(connection, name) if removed else set()
    for user in removed:
        if needed is not None and user not in needed and await _dropped(connection, user):
            await bookkeeping.delete_user(connection, user)


async def _definers(connection: MySQLConnection, name: str) -> set[str] | None:
    """The accounts that have defined something in the database; None if the server takes too long to list them."""
    limit = connection.flavour.time_limit
    await connection.run(f"SET SESSION {limit(_DEFINERS_SECONDS)}")
    try:
        rows = await ending_blockers(connection, name, partial(connection.run, _DEFINERS, (name, name, name)))
    except pymysql.MySQLError as error:
        if error.args[:1] not in ((TIMED_OUT,), (MARIADB_TIMED_OUT,)):
            raise
        return None
    finally:
        if connection.usable:
            await connection.run(f"SET SESSION {limit(0)}")
    return {str(definer).rpartition("@")[0] for (definer,) in rows}


async def _dropped(connection: MySQLConnection, user: str) -> bool:
    """Drops the account; returns False if something needs it as its definer. MySQL itself lets only a superuser drop
    such an account."""
    try:
        await connection.run(f"DROP USER IF EXISTS {account_name(user)}")
    except pymysql.MySQLError as error:
        if error.args[:1] != (STILL_DEFINER,):
            raise
        return False
    return True
