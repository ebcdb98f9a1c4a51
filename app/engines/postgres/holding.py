"""Tenants that get fewer connections than their limit while their server is short of them.

Only the limits of roles are lowered. The database's own limit stays: it says how many connections the tenant has, and
within it the administrator can still enter.
"""

from typing import Any

from app.engines.base import HeldLimits, SessionCounts
from app.engines.naming import HELPER_SEPARATOR
from app.engines.postgres import statements
from app.engines.postgres.catalog import ACCOUNT_KIND, TenantObjects

_LOCK_MILLISECONDS = 200
"""A tenant may keep its own role locked, by changing its password in a transaction that it leaves open: the others on
the server don't wait for that."""
_COUNTS = """
SELECT split_part(usename, $1, 1) AS name, count(*) AS sessions,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true), '0')::int AS room
FROM (SELECT coalesce(usename, '?')::text AS usename FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND usename IS DISTINCT FROM current_user) a
GROUP BY 1 UNION ALL
SELECT '', 0, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true), '0')::int
"""
# What its accounts have together is less than what its database has.
_HELD = f"""
SELECT d.datname::text AS name
FROM pg_database d JOIN pg_roles r ON r.rolname >= d.datname AND r.rolname < (d.datname || '`')::name
WHERE pg_get_userbyid(d.datdba) = current_user AND d.datconnlimit > 0 AND r.rolconnlimit > 0
GROUP BY d.datname, d.datconnlimit
HAVING max(r.rolconnlimit) FILTER (WHERE {ACCOUNT_KIND.format("d.datname", "r.rolname")} IN ('own', 'login'))
     < greatest(1, d.datconnlimit - {statements.SERVICE_HEADROOM} - coalesce(sum(r.rolconnlimit)
           FILTER (WHERE {ACCOUNT_KIND.format("d.datname", "r.rolname")} = 'user'), 0))
ORDER BY 1
"""  # noqa: S608  constants
_END = f"""
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT a.pid FROM pg_stat_activity a
    WHERE {ACCOUNT_KIND.format("$1::text", "a.usename::text")} IS NOT NULL AND a.backend_type = 'client backend'
    -- First those that are kept.
    ORDER BY a.state = 'idle' NULLS FIRST, a.state_change DESC, a.pid DESC OFFSET $2
) s
"""  # noqa: S608  constants


async def counts(connection: Any) -> SessionCounts:
    rows = await connection.fetch(_COUNTS, HELPER_SEPARATOR)
    return SessionCounts(
        limit=rows[0]["room"], by_name={row["name"]: row["sessions"] for row in rows if row["sessions"]}
    )


def lowered(name: str, limits: HeldLimits, found: TenantObjects) -> str:
    """The statements that apply the limits to the tenant's roles; empty when there is nothing to change."""
    own = [role for role in (name, *found.logins) if role not in found.retired] if found.role else []
    users = [(role, limits.of_user(role)) for role in found.users if role not in found.retired]
    of_each = [*((role, limits.own) for role in own), *users]
    changes = [
        f'ALTER ROLE "{role}" CONNECTION LIMIT {connections:d}'
        for role, connections in of_each
        if connections is not None
    ]
    # Together they are one transaction, whose setting goes with it.
    return "; ".join([f"SET LOCAL lock_timeout = {_LOCK_MILLISECONDS}", *changes]) if changes else ""


async def held(connection: Any) -> list[str]:
    return [row["name"] for row in await connection.fetch(_HELD)]


async def end_surplus(connection: Any, name: str, keep: int) -> int:
    ended: int = await connection.fetchval(_END, name, keep)
    return ended
