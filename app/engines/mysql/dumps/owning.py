"""A session of the tenant's own account, for what only the account itself can define as its own.

While the tenant is revoked its account is opened for this one login and closed at once. It has no rights in that
moment, and one session at most; whoever else got it is ended before the rights come back, and they come back only for
the session that is open by then. The password stays as it is.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from app.engines.base import Tenant
from app.engines.errors import CredentialsRefused, EngineError, LoginRefused, TenantFull
from app.engines.mysql import bookkeeping, shares
from app.engines.mysql.accounts import account_name
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.grants import grant
from app.engines.mysql.sessions import count_sessions, end_present_sessions

_TIMES = 10


@asynccontextmanager
async def owner_session(
    connections: MySQLConnections, administrator: MySQLConnection, tenant: Tenant
) -> AsyncIterator[MySQLConnection]:
    """A session of the tenant's own account. Raises `LoginRefused`."""
    row = await bookkeeping.find_row(administrator, tenant)
    if row is None:
        raise EngineError(f"{tenant.name} is not on this host")
    if not row.revoked:
        async with connections.tenant(tenant.login or tenant.name, tenant.password, tenant.name) as session:
            yield session
        return
    try:
        session = await _admitted(connections, administrator, tenant)
        try:
            yield session
        finally:
            session.close()
    finally:
        # Else the next load does it, or `end_dumps`.
        with suppress(EngineError):
            await close_owner(connections, tenant.name)


async def _admitted(connections: MySQLConnections, administrator: MySQLConnection, tenant: Tenant) -> MySQLConnection:
    account = account_name(tenant.name)
    for _ in range(_TIMES):
        session = None
        await administrator.run(f"ALTER USER {account} {shares.limit(1)} ACCOUNT UNLOCK")
        try:
            session = await connections.helper(tenant.name, tenant.password, None)
        except CredentialsRefused:
            # The tenant has given its account another password: as `restore_credentials` has it.
            await administrator.run(f"ALTER USER {account} {administrator.flavour.identified(tenant.password)}")
        except TenantFull:
            pass  # its client was quicker
        finally:
            await administrator.run(f"ALTER USER {account} ACCOUNT LOCK")
        await end_present_sessions(
            administrator,
            tenant.name,
            helpers=False,
            logging_in=True,
            keep=session.thread_id() if session else None,
        )
        if session is not None:
            await grant(administrator, tenant.name, tenant.name)
            # A session has the rights of the moment in which it selected its database.
            await session.run(f"USE `{tenant.name}`")
            return session
    raise LoginRefused(f"a client of {tenant.name} takes the session that it may have")


async def close_owner(connections: MySQLConnections, name: str) -> int:
    """Closes the account of a revoked tenant again, whatever a process that died has left. Returns how many sessions
    were open. Repeatable."""
    async with connections.extra() as connection:
        found = await bookkeeping.find_objects(connection, name)
        if name not in found.accounts or not await bookkeeping.is_revoked(connection, name):
            return 0
        account = account_name(name)
        await connection.run(f"ALTER USER {account} ACCOUNT LOCK")
        await connection.run(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account}")
        open_sessions = (await count_sessions(connection, name)).get(name, 0)
        await end_present_sessions(connection, name, helpers=False, logging_in=True)
        await shares.share_out(connection, name)
        return open_sessions
