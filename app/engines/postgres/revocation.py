"""Ending all access of a tenant, until it is restored."""

from typing import Any

from app.engines.base import EngineError, Tenant
from app.engines.postgres import catalog, statements
from app.engines.postgres.blockers import ending_blockers
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.errors import LOCK_NOT_AVAILABLE
from app.engines.postgres.sessions import end_sessions

_PATIENCE_SECONDS = 0.2


async def end_access(connections: PostgresConnections, tenant: Tenant) -> None:
    """Closes its logins and ends its sessions. Raises `EngineError` when some don't end."""
    try:
        async with connections.locked(tenant.name) as connection:
            await _close(connections, connection, tenant)
    except EngineError as error:
        if error.code != LOCK_NOT_AVAILABLE:
            raise
        # If the administrator's database is open to everybody, the tenant itself can hold the lock.
        async with connections.admin() as connection:
            await _close(connections, connection, tenant)
        async with connections.locked(tenant.name) as connection:
            await _close(connections, connection, tenant)


async def _close(connections: PostgresConnections, connection: Any, tenant: Tenant) -> None:
    found = (await catalog.find(connection, tenant.name)).check(tenant)
    closing = statements.close(tenant, found)
    if closing:
        # Committed before any session is ended, or its client would reconnect in between.
        async with ending_blockers(connections, tenant.name, patience=_PATIENCE_SECONDS):
            await connection.execute(closing)
        await end_sessions(connection, tenant.name)
