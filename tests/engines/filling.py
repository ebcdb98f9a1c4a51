"""Rows for tables that somebody else defined, made from nothing but their catalogs."""

from typing import Any

import asyncpg

_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) AS name,
       string_agg(quote_ident(a.attname), ', ' ORDER BY attnum) AS columns,
       string_agg(CASE
           WHEN t.typname IN ('int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'oid')
               THEN format('(i %% 999)::%s', ty)
           WHEN t.typname IN ('text', 'varchar', 'bpchar', 'name', 'citext')
               THEN format('left(md5(i::text), %s)::%s', CASE WHEN a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 40 END, ty)
           WHEN t.typname = 'bool' THEN 'i % 2 = 0'
           WHEN t.typname IN ('timestamp', 'timestamptz', 'date')
               THEN format('(timestamp ''2020-01-01'' + i * interval ''1 hour'')::%s', ty)
           WHEN t.typname = 'bytea' THEN 'decode(md5(i::text), ''hex'')'
           WHEN t.typname = 'uuid' THEN 'md5(i::text)::uuid'
           WHEN t.typname IN ('json', 'jsonb') THEN format('json_build_object(''i'', i)::%s', ty)
           WHEN t.typtype = 'e' THEN format('(enum_range(NULL::%s))[1]', ty)
           WHEN t.typcategory = 'A' THEN format('''{}''::%s', ty)
           ELSE format('NULL::%s', ty) END, ', ' ORDER BY attnum) AS exprs
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_type t ON t.oid = a.atttypid CROSS JOIN LATERAL format_type(a.atttypid, a.atttypmod) AS ty
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  AND NOT starts_with(n.nspname, 'pg_') AND n.nspname <> 'information_schema'
GROUP BY n.nspname, c.relname ORDER BY 1
"""


async def fill(superuser: Any, rows: int) -> int:
    """Puts rows into every table that takes them, whatever they refer to; returns how many tables have some."""
    filled = 0
    await superuser.execute("SET session_replication_role = replica")
    for row in await superuser.fetch(_TABLES):
        try:
            status = await superuser.execute(
                f"INSERT INTO {row['name']} ({row['columns']}) OVERRIDING SYSTEM VALUE"
                f" SELECT {row['exprs']} FROM generate_series(1, {rows}) i ON CONFLICT DO NOTHING"
            )
        except asyncpg.PostgresError:
            continue
        filled += status != "INSERT 0 0"
    await superuser.execute("RESET session_replication_role")
    return filled
