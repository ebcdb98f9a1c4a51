"""Measuring tenants on a PostgreSQL server. A database's size includes all its files: tables, indexes, large
objects, and its system catalogs, which hold the bodies of functions, views and comments. Settings of roles lie in a
catalog of the whole server, and a role may make one for every database there is: they are added."""

from collections.abc import Sequence
from typing import Any

from app.engines.base import COUNT_SECONDS, Counters, Measuring, Usage
from app.engines.naming import HELPER_SEPARATOR
from app.engines.postgres.catalog import ACCOUNT_KIND
from app.engines.postgres.errors import translated
from app.engines.tenants import counted

# The size of a setting is that of its stored form, which isn't read for it.
_MEASURE = f"""
WITH settings AS (
    SELECT split_part(r.rolname, '{HELPER_SEPARATOR}', 1) AS name, sum(pg_column_size(s.setconfig)) AS octets
    FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole GROUP BY 1
)
SELECT d.datname, pg_database_size(d.oid) + coalesce(s.octets, 0) AS storage_bytes,
       (SELECT count(*) FROM pg_stat_activity a
        WHERE a.datid = d.oid AND {ACCOUNT_KIND.format("d.datname", "a.usename")} IS NOT NULL) AS connections,
       EXISTS (SELECT 1 FROM pg_stat_progress_cluster p WHERE p.datid = d.oid) AS rebuilding
FROM pg_database d LEFT JOIN settings s ON s.name = d.datname WHERE d.datname = ANY($1::name[])
"""  # noqa: S608  constants

# The counters of a database begin anew with its oid, with `pg_stat_reset()` in it, and with all others when the server
# starts or recovers from a crash: then those of the writer begin too.
_COUNTERS = """
SELECT d.datname, concat_ws(' ', d.datid, coalesce(extract(epoch FROM d.stats_reset), 0),
       coalesce(extract(epoch FROM b.stats_reset), 0), extract(epoch FROM pg_postmaster_start_time())) AS began,
       d.xact_commit + d.xact_rollback AS transactions, d.tup_returned AS rows_read,
       d.tup_inserted + d.tup_updated + d.tup_deleted AS rows_written,
       d.blks_hit AS cache_hits, d.blks_read AS cache_reads
FROM pg_stat_database d, pg_stat_bgwriter b WHERE d.datname = ANY($1::name[])
"""


class PostgresMeasuring(Measuring):
    """The server inspects each file of a database, so that one with millions of tables takes seconds."""

    def __init__(self, connection: Any, host: str) -> None:
        self._connection = connection
        self._host = host

    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        with translated(self._host):
            rows = await _ask(self._connection, _MEASURE, names, seconds)
        return {
            row["datname"]: Usage(
                storage_bytes=row["storage_bytes"] or 0, connections=row["connections"], rebuilding=row["rebuilding"]
            )
            for row in rows
        }


async def counters(connection: Any, names: Sequence[str]) -> dict[str, Counters]:
    rows = await _ask(connection, _COUNTERS, names, COUNT_SECONDS)
    return {
        row["datname"]: Counters(
            began=row["began"],
            transactions=counted(row["transactions"]),
            rows_read=counted(row["rows_read"]),
            rows_written=counted(row["rows_written"]),
            cache_hits=counted(row["cache_hits"]),
            cache_reads=counted(row["cache_reads"]),
        )
        for row in rows
    }


async def _ask(connection: Any, statement: str, names: Sequence[str], seconds: float) -> list[Any]:
    """The rows of the statement, read within `seconds`."""
    async with connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL statement_timeout = {max(1, int(1000 * seconds))}")
        return list(await connection.fetch(statement, list(names)))
