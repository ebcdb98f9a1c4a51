"""Finding a tenant's sessions, and ending them reliably."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import asyncpg

from app.engines.base import EngineError
from app.engines.naming import HELPER_SEPARATOR

END_SECONDS = 20
POLL_SECONDS = 0.02
ARRIVAL_SECONDS = 5.0
"""How long a login may take from its check to its session before it is ended together with the sessions of a role that
it may belong to."""

# Nothing else takes this lock. A session elsewhere may hold others: for a setting of its own in this database.
_ARRIVING = """
SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.objid
WHERE l.locktype = 'object' AND l.classid = 'pg_database'::regclass AND d.datname = $1
  AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid()
  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = l.pid AND a.datname <> $1)
"""
# Superusers are the operator's, and not ours to end.
_TERMINATE = """
SELECT count(pg_terminate_backend(a.pid))
FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
WHERE (a.datname = $1 OR r.rolname = $1 OR starts_with(r.rolname, $1 || $2))
  AND NOT r.rolsuper AND a.pid <> pg_backend_pid()
"""
_ARRIVING_UNKNOWN = f"""
{_ARRIVING} AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = l.pid AND a.usesysid IS NOT NULL)
"""
_TERMINATE_ROLE = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1"

_PRESENT = """
SELECT a.pid, a.backend_start FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
WHERE (r.rolname = $1 OR starts_with(r.rolname, $1 || $2)) AND NOT r.rolsuper
"""
_STILL_THERE = """
SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a
JOIN unnest($1::int[], $2::timestamptz[]) AS p (pid, backend_start) USING (pid, backend_start)
"""


async def end_present_sessions(connection: Any, name: str) -> None:
    """Ends the sessions of the tenant's roles that are open now; new ones may follow. Raises `EngineError` when some
    still exist after `END_SECONDS`."""
    rows = await connection.fetch(_PRESENT, name, HELPER_SEPARATOR)
    pids, starts = [row["pid"] for row in rows], [row["backend_start"] for row in rows]
    deadline = time.monotonic() + END_SECONDS
    while await connection.fetchval(_STILL_THERE, pids, starts):
        if time.monotonic() > deadline:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(POLL_SECONDS)


async def end_sessions_of(connection: Any, database: str, role: str) -> None:
    """Ends all sessions of one role, after its login was closed, and no others. Raises `EngineError` when some still
    exist after `END_SECONDS`."""
    began = time.monotonic()
    # A login that was let in before, and shows among no sessions yet. It shows whose it is in a few milliseconds,
    # unless its client holds it up.
    arriving = {row["pid"] for row in await connection.fetch(_ARRIVING_UNKNOWN, database)}
    clean = 0
    while True:
        if arriving:
            arriving &= {row["pid"] for row in await connection.fetch(_ARRIVING_UNKNOWN, database)}
        if arriving and time.monotonic() - began > ARRIVAL_SECONDS:
            await _terminate(connection, arriving)
        ended = await connection.fetchval(_TERMINATE_ROLE, role)
        clean = 0 if ended or arriving else clean + 1
        # Twice, because a login is checked a moment before it can be seen.
        if clean == 2:
            return
        if time.monotonic() - began > END_SECONDS:
            raise EngineError(f"sessions of {role} don't end")
        await asyncio.sleep(POLL_SECONDS)


async def _terminate(connection: Any, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(asyncpg.InsufficientPrivilegeError):  # the server's own, such as autovacuum
            await connection.execute("SELECT pg_terminate_backend($1)", pid)


async def end_sessions(connection: Any, name: str) -> None:
    """Ends all sessions in the database and of the tenant's roles, after logins were closed. Raises `EngineError`
    when some still exist after `END_SECONDS`."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        # In this order: a login in progress locks the database from before its access check until it appears among the
        # sessions, so one of the two queries sees it. Its client may hold it there for half an hour, with the startup
        # option post_auth_delay.
        arriving = await connection.fetch(_ARRIVING, name)
        await _terminate(connection, [row["pid"] for row in arriving])
        if not await connection.fetchval(_TERMINATE, name, HELPER_SEPARATOR) and not arriving:
            return
        if time.monotonic() > deadline:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(POLL_SECONDS)
