"""Ending sessions of tenants that block the administrator's work on them.

An open transaction suffices: one that changed its own password or a table's rights locks that row of the catalog for as
long as it likes. No tenant may delay its limits, its freeze or its revocation.

Nor may it delay another tenant's removal: a GRANT to any role locks the role until its transaction ends, and a setting
of one's own for any database locks that database, so that neither can be dropped or renamed. Nobody else waits for such
a lock for long, so whoever holds one that we wait for is ended.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from app.engines.base import EngineError
from app.engines.naming import HELPER_SEPARATOR
from app.engines.postgres.connections import PostgresConnections

_POLL_SECONDS = 0.2
# A session that waits before ours blocks us as much as the one that holds the lock. Superusers are the operator's.
_END = """
SELECT count(pg_terminate_backend(b.pid))
FROM pg_stat_activity w CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS blocking (pid)
JOIN pg_stat_activity b ON b.pid = blocking.pid JOIN pg_roles r ON r.oid = b.usesysid
WHERE w.usename = current_user AND w.wait_event_type = 'Lock'
  AND b.usesysid <> w.usesysid AND NOT r.rolsuper
  AND (r.rolname = $1 OR starts_with(r.rolname, $1 || $2)
       OR EXISTS (SELECT FROM pg_locks l WHERE l.pid = w.pid AND NOT l.granted AND l.locktype = 'object'
                  AND l.classid IN ('pg_authid'::regclass, 'pg_database'::regclass)))
"""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def ending_blockers(connections: PostgresConnections, name: str, *, patience: float) -> AsyncIterator[None]:
    """From `patience` seconds on until the end of the block, ends sessions of the tenant that the administrator waits
    for, and anybody's that have a role or a database locked."""
    watching = asyncio.create_task(_watch(connections, name, patience))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(connections: PostgresConnections, name: str, patience: float) -> None:
    await asyncio.sleep(patience)
    while True:
        try:
            # Not from the pool: those who wait may hold all of its connections.
            async with connections.admin_alone() as connection:
                while True:
                    ended = await connection.fetchval(_END, name, HELPER_SEPARATOR)
                    if ended:
                        log.info("blocking_sessions_ended", tenant=name, sessions=ended)
                    await asyncio.sleep(_POLL_SECONDS)
        except EngineError as error:
            log.warning("blocking_sessions_not_seen", tenant=name, reason=str(error))
            await asyncio.sleep(_POLL_SECONDS)
