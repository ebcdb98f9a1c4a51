"""Dropping a role of a tenant, also where other tenants name it.

Every tenant can read the names of all roles, and use them in its own database: in a GRANT, in default privileges, in a
policy. PostgreSQL drops no role that any database names, so that one tenant could keep another from being destroyed.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import structlog

from app.engines.base import EngineError, TenantFull
from app.engines.naming import HELPER_SEPARATOR
from app.engines.postgres import holding, ownership, statements
from app.engines.postgres.blockers import ending_blockers
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.sessions import END_SECONDS, POLL_SECONDS

_ROUNDS = 5
_PATIENCE_SECONDS = 1
_NAMING = """
SELECT DISTINCT d.datname::text AS name FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid
WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
  AND d.datname <> current_database()
ORDER BY 1 LIMIT 100
"""
_LIMIT = "SELECT datconnlimit FROM pg_database WHERE datname = $1"
_LOCK_KEY = "hashtextextended('headwater ' || $1::text, 0)"

log = structlog.get_logger(__name__)


async def drop_role(connections: PostgresConnections, connection: Any, role: str, *, durably: bool = True) -> None:
    """Drops the role. The caller holds the lock of the role's tenant on `connection`. Where other tenants name the
    role, what they say of it goes first. Unless `durably`, a crash of the server may bring the role back."""
    try:
        await connection.execute(("" if durably else statements.NOT_DURABLY) + statements.drop_role(role))
        return
    except asyncpg.DependentObjectsStillExistError:
        await connection.execute(f'DROP OWNED BY "{role}"')
    for _ in range(_ROUNDS):
        for row in await connection.fetch(_NAMING, role):
            if await _dropped_in(connections, connection, row["name"], role):
                return
    await connection.execute(statements.drop_role(role))


async def _dropped_in(connections: PostgresConnections, connection: Any, database: str, role: str) -> bool:
    """Takes the role out of another tenant's database, and drops it from there, before that one can name it again."""
    tenant = database.partition(HELPER_SEPARATOR)[0]
    # Never waited for: two tenants that are removed at once may name each other.
    if not await connection.fetchval(f"SELECT pg_try_advisory_lock({_LOCK_KEY})", tenant):
        raise EngineError(f"{role} is named in the database {database}, which is being changed")
    try:
        opened = await _open(connection, database)
        try:
            async with (
                AsyncExitStack() as stack,
                ending_blockers(connections, tenant, patience=_PATIENCE_SECONDS),
            ):
                inside = await _entered(stack, connections, connection, database, tenant)
                await ownership.take_out(inside, tenant, role)
                return await _try_to_drop(inside, role)
        finally:
            if opened:
                await connection.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
    finally:
        await connection.execute(f"SELECT pg_advisory_unlock({_LOCK_KEY})", tenant)


async def _entered(
    stack: AsyncExitStack, connections: PostgresConnections, connection: Any, database: str, tenant: str
) -> Any:
    """The administrator's session in another tenant's database, until the stack is closed. Two logins that nothing
    counts together may take the service's places there as well: then the tenant's sessions above its limit end, until
    the administrator is in. Raises `TenantFull` when it isn't after `END_SECONDS`."""
    try:
        return await stack.enter_async_context(connections.admin_in(database))
    except TenantFull as error:
        log.warning("surplus_sessions_end", tenant=tenant, reason=str(error))
    deadline = time.monotonic() + END_SECONDS
    while True:
        keep = max(0, await connection.fetchval(_LIMIT, database) - statements.SERVICE_HEADROOM)
        if not await holding.end_surplus(connection, tenant, keep):
            # The service's own sessions have these places, or will be found in a moment.
            await asyncio.sleep(POLL_SECONDS)
        try:
            # At once: clients that come back are as quick.
            return await stack.enter_async_context(connections.admin_in(database))
        except TenantFull:
            if time.monotonic() > deadline:
                raise


async def _open(connection: Any, database: str) -> bool:
    """Opens a database; returns whether it was closed, as that of a revoked tenant is, whose roles may not log in."""
    if await connection.fetchval("SELECT datallowconn FROM pg_database WHERE datname = $1", database):
        return False
    await connection.execute(statements.open_for_service(database))
    return True


async def _try_to_drop(inside: Any, role: str) -> bool:
    try:
        await inside.execute(statements.drop_role(role))
    except asyncpg.DependentObjectsStillExistError:
        return False
    return True
