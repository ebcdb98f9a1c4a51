"""What all tenants of a PostgreSQL server share: its lock table and its transaction ids.

An open transaction keeps its database's oldest ids from being frozen, and the ids are server-wide: at 2^31 of them the
server accepts no more writes. The lock table is in shared memory, and one session can fill it; then nobody can log in.

Tenants have no right to replication slots, and a cursor WITH HOLD keeps no snapshot.
"""

from collections.abc import Sequence
from typing import Any

from app.engines.base import SessionLimits, SessionsEnded, SharedResource
from app.engines.dumping import DumpPurpose
from app.engines.naming import HELPER_SEPARATOR

_MAX = 200
"""The maximum of sessions ended in one pass for one reason."""
_CAPACITY = """
current_setting('max_locks_per_transaction')::bigint
    * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint)
"""
# A session within the room that the server reserves for every session is never ended.
_LOCKS = f"""
WITH held AS (
    SELECT pid, count(*) AS locks FROM pg_locks WHERE NOT fastpath AND pid IS NOT NULL AND pid <> pg_backend_pid()
    GROUP BY pid
), ranked AS (
    SELECT pid, locks, sum(locks) OVER () AS total, sum(locks) OVER (ORDER BY locks DESC, pid) - locks AS before
    FROM held
), chosen AS (
    SELECT k.pid, split_part(r.rolname, $2, 1) AS tenant
    FROM ranked k JOIN pg_stat_get_activity(NULL) a ON a.pid = k.pid JOIN pg_roles r ON r.oid = a.usesysid
    WHERE k.before < k.total - {_CAPACITY} * $3 / 100 AND NOT r.rolsuper
      AND k.locks > current_setting('max_locks_per_transaction')::bigint
      AND split_part(r.rolname, $2, 1) = ANY($1::text[])
    ORDER BY k.locks DESC LIMIT $4
)
SELECT tenant, pg_terminate_backend(pid) AS ended FROM chosen
"""  # noqa: S608  constants
# A backup has a time limit of its own, by the size of its database, and runs nothing of the tenant's.
_IS_LONG = "(a.xact_start < now() - make_interval(secs => $4) AND split_part(r.rolname, $2, 2) <> $6)"
_TRANSACTIONS = f"""
WITH chosen AS (
    SELECT a.pid, split_part(r.rolname, $2, 1) AS tenant,
           CASE WHEN {_IS_LONG} THEN 'long_transaction' ELSE 'idle_transaction' END AS reason
    FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
    WHERE split_part(r.rolname, $2, 1) = ANY($1::text[]) AND NOT r.rolsuper
      AND ({_IS_LONG}
           OR a.state LIKE 'idle in transaction%' AND a.state_change < now() - make_interval(secs => $3))
    ORDER BY a.xact_start LIMIT $5
)
SELECT tenant, reason, pg_terminate_backend(pid) AS ended FROM chosen
"""  # noqa: S608  constants
_PREPARED = """
SELECT DISTINCT database::text AS name FROM pg_prepared_xacts
WHERE database = ANY($1::name[]) AND prepared < now() - make_interval(secs => $2) LIMIT $3
"""
_RESOURCES = f"""
SELECT 'transaction_ids' AS name, max(age(datfrozenxid))::float8 AS used, 2147483648::float8 AS capacity
FROM pg_database
UNION ALL SELECT 'multixact_ids', max(mxid_age(datminmxid)), 2147483648 FROM pg_database
UNION ALL SELECT 'locks', count(*), {_CAPACITY} FROM pg_locks WHERE NOT fastpath
UNION ALL SELECT 'oldest_snapshot_transactions', coalesce(max(age(xmin)), 0), NULL
FROM (SELECT backend_xmin AS xmin FROM pg_stat_get_activity(NULL) UNION ALL SELECT transaction FROM pg_prepared_xacts
      UNION ALL SELECT xmin FROM pg_replication_slots UNION ALL SELECT catalog_xmin FROM pg_replication_slots) s
"""  # noqa: S608  constants


async def end_excessive_sessions(connection: Any, names: Sequence[str], limits: SessionLimits) -> list[SessionsEnded]:
    """Ends sessions. Prepared transactions outlive their sessions: see `forgotten`."""
    tenants = list(names)
    locks = await connection.fetch(_LOCKS, tenants, HELPER_SEPARATOR, limits.shared_percent, _MAX)
    transactions = await connection.fetch(
        _TRANSACTIONS,
        tenants,
        HELPER_SEPARATOR,
        limits.idle_transaction_seconds,
        limits.transaction_seconds,
        _MAX,
        DumpPurpose.BACKUP.value,
    )
    return [
        *[SessionsEnded(tenant=row["tenant"], reason="locks") for row in locks if row["ended"]],
        *[SessionsEnded(tenant=row["tenant"], reason=row["reason"]) for row in transactions if row["ended"]],
    ]


async def forgotten(connection: Any, names: Sequence[str], seconds: float) -> list[str]:
    """Those of these databases that have a transaction prepared more than `seconds` ago."""
    return [row["name"] for row in await connection.fetch(_PREPARED, list(names), seconds, _MAX)]


async def resources(connection: Any) -> list[SharedResource]:
    rows = await connection.fetch(_RESOURCES)
    return [SharedResource(name=row["name"], used=row["used"] or 0, capacity=row["capacity"]) for row in rows]
