"""What a tenant's database holds, for a prompt: read by the SELECT-only account, from the catalogs alone."""

from typing import Any

import asyncpg

from app.engines.naming import literal
from app.engines.querying import ColumnInfo, Reference, TableInfo

_MOST_COLUMNS = 20_000

_COLUMNS = f"""
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind IN ('v', 'm') AS is_view,
       t.description AS comment, a.attnum, a.attname::text AS column, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS required, d.description AS column_comment
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_description t ON t.objoid = c.oid AND t.classoid = 'pg_class'::regclass AND t.objsubid = 0
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
ORDER BY c.oid, a.attnum LIMIT {_MOST_COLUMNS}
"""  # noqa: S608 - a number of ours
# Lists of numbers as text: the driver would first ask the server what an array of smallint is.
_KEYS = """
SELECT conrelid, contype::text, array_to_string(conkey, ' ') AS columns, confrelid,
       array_to_string(confkey, ' ') AS targets
FROM pg_constraint WHERE contype IN ('p', 'f')
"""
# A change of a catalog's row gives it another xmin, higher than all before. Oids from here on are not the system's own.
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
# Most of its time is that of a new session's first look at each catalog.
_VERSION = f"(SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM ({_ROWS}) AS rows)"  # noqa: S608


async def version(connection: Any) -> str:
    """Far quicker to ask for than what it stands for, above all in a new session."""
    found: str = await connection.fetchval(f"SELECT {_VERSION}")
    return found


async def is_still(connection: Any, known: str) -> bool:
    """Whether this is the version. The driver needs two round trips for an answer with a row, and one for an answer
    without: so the server is to fail where it is not."""
    try:
        await connection.execute(f"SELECT 1 / ({_VERSION} = {literal(known)})::int")
    except asyncpg.DivisionByZeroError:
        return False
    return True


async def tables(connection: Any) -> list[TableInfo]:
    """In the order in which they were made."""
    found: dict[int, TableInfo] = {}
    names: dict[tuple[int, int], str] = {}
    for row in await connection.fetch(_COLUMNS):
        table = found.get(row["oid"])
        if table is None:
            table = found[row["oid"]] = TableInfo(
                schema=row["schema"], name=row["name"], is_view=row["is_view"], comment=row["comment"], columns=[]
            )
        names[row["oid"], row["attnum"]] = row["column"]
        table.columns.append(
            ColumnInfo(name=row["column"], type=row["type"], required=row["required"], comment=row["column_comment"])
        )
    if found:
        await _add_keys(connection, found, names)
    return list(found.values())


async def _add_keys(connection: Any, found: dict[int, TableInfo], names: dict[tuple[int, int], str]) -> None:
    for row in await connection.fetch(_KEYS):
        table, target = found.get(row["conrelid"]), found.get(row["confrelid"])
        if table is None:
            continue
        columns = tuple(names[row["conrelid"], int(number)] for number in row["columns"].split())
        if row["contype"] == "p":
            table.primary_key = columns
        elif target is not None:
            targets = tuple(names[row["confrelid"], int(number)] for number in row["targets"].split())
            table.references.append(Reference(columns=columns, table=target.key, target_columns=targets))
