"""The schema of a tenant's database for a prompt, read by the SELECT-only account from the catalogs alone.

Only `pg_catalog` is searched meanwhile: in `public` a tenant may have a function or an operator for just these types,
which would be taken for the server's.
"""

from typing import Any

import asyncpg

from app.engines.naming import literal
from app.engines.querying import (
    MAX_COLUMNS,
    MAX_COMMENT,
    MAX_KEYS,
    MAX_TABLES,
    MAX_TYPE,
    ColumnInfo,
    Reference,
    TableInfo,
)

_TABLES = f"""
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind IN ('v', 'm') AS is_view,
       left(t.description, {MAX_COMMENT}) AS comment
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description t ON t.objoid = c.oid AND t.classoid = 'pg_class'::regclass AND t.objsubid = 0
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
ORDER BY c.oid LIMIT {MAX_TABLES}
"""  # noqa: S608 - numbers of ours
# As statements name it, which search `public` too: without the schema, unless the server has a type of that name.
_TYPE = (
    "CASE WHEN NOT starts_with(f.name, 'public.') THEN f.name"
    " WHEN to_regtype(substr(f.name, 8)) IS NULL THEN substr(f.name, 8) ELSE f.name END"
)
_COLUMNS = f"""
WITH tables AS ({_TABLES})
SELECT a.attrelid, a.attnum, a.attname::text AS name, left({_TYPE}, {MAX_TYPE}) AS type,
       a.attnotnull AS required, left(d.description, {MAX_COMMENT}) AS comment
FROM pg_attribute a CROSS JOIN LATERAL (SELECT format_type(a.atttypid, a.atttypmod) AS name) f
LEFT JOIN pg_description d ON d.objoid = a.attrelid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
WHERE a.attrelid IN (SELECT oid FROM tables) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum LIMIT {MAX_COLUMNS}
"""  # noqa: S608 - numbers of ours
# Lists of numbers as text: the driver would first ask the server what an array of smallint is.
_KEYS = f"""
WITH tables AS ({_TABLES})
SELECT conrelid, contype::text, array_to_string(conkey, ' ') AS columns, confrelid,
       array_to_string(confkey, ' ') AS targets
FROM pg_constraint WHERE contype IN ('p', 'f') AND conrelid IN (SELECT oid FROM tables)
ORDER BY conrelid, oid LIMIT {MAX_KEYS}
"""  # noqa: S608 - numbers of ours
# A change to a catalog row gives it a new, higher xmin. Lower oids are the system's own.
_ROWS = " UNION ALL ".join(
    f"SELECT xmin FROM {catalog} WHERE {oid} >= 16384"  # noqa: S608 - names of ours
    for catalog, oid in (
        ("pg_class", "oid"),
        ("pg_attribute", "attrelid"),
        ("pg_description", "objoid"),
        ("pg_constraint", "oid"),
        ("pg_namespace", "oid"),
    )
)
# Most of its time is a new session's first access to each catalog.
_VERSION = f"(SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM ({_ROWS}) AS rows)"  # noqa: S608


async def version(connection: Any) -> str:
    """The version of the schema. It is much faster to read than the description, above all in a new session."""
    found: str = await connection.fetchval(f"SELECT {_VERSION}")
    return found


async def is_still(connection: Any, known: str) -> bool:
    """Whether this is still the version. The driver needs two round trips for a response with a row and one for a
    response without, so the statement fails when it isn't."""
    try:
        await connection.execute(f"SELECT 1 / ({_VERSION} = {literal(known)})::int")
    except asyncpg.DivisionByZeroError:
        return False
    return True


async def tables(connection: Any) -> list[TableInfo]:
    """The tables and views, in the order of creation. What exceeds the limits is left out, even in the middle of a
    table."""
    found = {
        row["oid"]: TableInfo(
            schema=row["schema"], name=row["name"], is_view=row["is_view"], comment=row["comment"], columns=[]
        )
        for row in await connection.fetch(_TABLES)
    }
    names: dict[tuple[int, int], str] = {}
    for row in await connection.fetch(_COLUMNS) if found else ():
        table = found.get(row["attrelid"])
        if table is not None:
            names[row["attrelid"], row["attnum"]] = row["name"]
            table.columns.append(
                ColumnInfo(name=row["name"], type=row["type"], required=row["required"], comment=row["comment"])
            )
    if names:
        await _add_keys(connection, found, names)
    return [table for table in found.values() if table.columns]


async def _add_keys(connection: Any, found: dict[int, TableInfo], names: dict[tuple[int, int], str]) -> None:
    for row in await connection.fetch(_KEYS):
        table, target = found.get(row["conrelid"]), found.get(row["confrelid"])
        columns = _named(names, row["conrelid"], row["columns"])
        if table is None or columns is None:
            continue
        if row["contype"] == "p":
            table.primary_key = columns
        elif target is not None:
            targets = _named(names, row["confrelid"], row["targets"])
            if targets is not None:
                table.references.append(Reference(columns=columns, table=target.key, target_columns=targets))


def _named(names: dict[tuple[int, int], str], table: int, numbers: str) -> tuple[str, ...] | None:
    """The names of a table's columns by their numbers; None if one of them was left out."""
    found = [names.get((table, int(number))) for number in numbers.split()]
    named = tuple(name for name in found if name is not None)
    return named if len(named) == len(found) else None
