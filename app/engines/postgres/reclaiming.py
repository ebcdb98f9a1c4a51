"""Reclaiming the space of deleted rows in a frozen tenant's tables, as the tenant itself, because rebuilding a table
runs the functions of its indexes."""

import time
from typing import Any

import asyncpg

_WORTH_BYTES = 2**20
_MAX = 100
"""The maximum of tables in one call; the next continues with others."""
_ENOUGH_SECONDS = 30
"""No further table is begun after this time, because other work on the tenant has to wait."""
# A plain VACUUM removes dead rows at a table's end and blocks nobody. Dead rows in between need a rebuild.
_LOOSE = """
SELECT format('%I.%I', s.schemaname, s.relname) AS name,
       pg_total_relation_size(s.relid) >= $1
           AND (s.n_dead_tup + coalesce(t.n_dead_tup, 0)) * 4 >= s.n_live_tup + coalesce(t.n_live_tup, 0) AS rebuild
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
LEFT JOIN pg_stat_all_tables t ON t.relid = c.reltoastrelid
WHERE c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
  AND s.n_dead_tup + coalesce(t.n_dead_tup, 0) > 0
ORDER BY pg_total_relation_size(s.relid) DESC LIMIT $2
"""


async def reclaim(session: Any) -> None:
    """Rebuilds tables of which a fifth or more is dead rows, and truncates the empty end of others. Raises
    `LockNotAvailableError`, after the others, if one of them is locked."""
    await session.execute("SET lock_timeout = '5s'")
    held: asyncpg.LockNotAvailableError | None = None
    deadline = time.monotonic() + _ENOUGH_SECONDS
    for row in await session.fetch(_LOOSE, _WORTH_BYTES, _MAX):
        if time.monotonic() > deadline:
            break
        try:
            await session.execute(f"VACUUM {'(FULL)' if row['rebuild'] else ''} {row['name']}")
        except asyncpg.LockNotAvailableError as error:
            held = error
    if held is not None:
        raise held
