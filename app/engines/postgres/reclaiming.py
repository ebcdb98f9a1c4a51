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
# A plain VACUUM removes dead rows at a table's end and blocks nobody. What lies between live rows needs a rebuild: dead
# rows, and the empty room that a VACUUM makes of them, which nothing counts: what the table holds beyond what its live
# rows need by their statistics. Where there are none, or the table has options of its own, nothing is estimated. Live
# rows are counted twice, because a crash of the server resets the one count. A rebuild comes after a plain VACUUM: by
# itself it keeps what was deleted since the oldest open transaction began, in whichever database of the server.
_LOOSE = """
SELECT name, bytes >= $1 AND (dead * 4 >= live OR bytes * 3 > needed * 4) AS rebuild
FROM (
    SELECT format('%I.%I', s.schemaname, s.relname) AS name, pg_total_relation_size(s.relid) AS bytes_with_indexes,
           pg_table_size(s.relid) AS bytes,
           s.n_dead_tup + coalesce(t.n_dead_tup, 0) AS dead, s.n_live_tup + coalesce(t.n_live_tup, 0) AS live,
           -- A page has 8160 bytes; a row's header takes 28, up to 7 align a value. Four chunks of TOAST fit.
           ceil(greatest(s.n_live_tup, c.reltuples) / greatest(floor(8160 / (28 + w.width)), 1)) * 8192
           + coalesce(greatest(t.n_live_tup, tc.reltuples), 0) * 2048 AS needed
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    LEFT JOIN pg_stat_all_tables t ON t.relid = c.reltoastrelid
    LEFT JOIN pg_class tc ON tc.oid = c.reltoastrelid
    LEFT JOIN LATERAL (
        SELECT sum((avg_width + 7) * (1 - null_frac)) AS width FROM pg_stats
        WHERE schemaname = s.schemaname AND tablename = s.relname AND NOT inherited
          AND c.reloptions IS NULL
    ) w ON true
    WHERE c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
) tables
WHERE dead > 0 OR (bytes >= $1 AND bytes * 3 > needed * 4)
ORDER BY bytes_with_indexes DESC LIMIT $2
"""


async def reclaim(session: Any) -> None:
    """Rebuilds tables of which about a fifth or more is dead rows or empty room, and truncates the empty end of others.
    Raises `LockNotAvailableError`, after the others, if one of them is locked."""
    await session.execute("SET lock_timeout = '5s'")
    held: asyncpg.LockNotAvailableError | None = None
    deadline = time.monotonic() + _ENOUGH_SECONDS
    for row in await session.fetch(_LOOSE, _WORTH_BYTES, _MAX):
        if time.monotonic() > deadline:
            break
        try:
            await session.execute(f"VACUUM {row['name']}")
            if row["rebuild"]:
                await session.execute(f"VACUUM (FULL) {row['name']}")
        except asyncpg.LockNotAvailableError as error:
            held = error
    if held is not None:
        raise held
