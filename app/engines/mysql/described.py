"""The schema of a tenant's database for a prompt, read by the SELECT-only account from information_schema alone."""

from collections.abc import Sequence
from typing import Any

from app.engines.mysql.connection import MySQLConnection
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

# Compared as they are described: what is cut off changes nothing, and needn't be read again.
_TABLE = f"table_name, table_type, LEFT(table_comment, {MAX_COMMENT})"
_COLUMN = f"LEFT(column_type, {MAX_TYPE}), is_nullable, LEFT(column_comment, {MAX_COMMENT})"
# One table of information_schema at a time: a join of two takes MariaDB a tenth of a second.
_TABLES = f"""
SELECT {_TABLE} FROM information_schema.tables WHERE table_schema = %s ORDER BY table_name LIMIT {MAX_TABLES}
"""  # noqa: S608 - numbers of ours
_COLUMNS = f"""
SELECT table_name, column_name, {_COLUMN} FROM information_schema.columns
WHERE table_schema = %s ORDER BY table_name, ordinal_position LIMIT {MAX_COLUMNS}
"""  # noqa: S608 - numbers of ours
_KEYS = f"""
SELECT table_name, constraint_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = %s AND constraint_schema = %s ORDER BY table_name, constraint_name, ordinal_position
LIMIT {MAX_KEYS}
"""  # noqa: S608 - a number of ours
# For each table of information_schema the number of rows and a checksum over them. MySQL 9 has no MD5 any more.
_VERSION = "\nUNION ALL\n".join(
    f"SELECT '{name}', COUNT(*), COALESCE(BIT_XOR(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', {columns}), 256), 16), 16, 10)"  # noqa: S608 - names of ours
    f" AS UNSIGNED)), 0) FROM information_schema.{name} WHERE {ours}"
    for name, ours, columns in (
        ("tables", "table_schema = %s", _TABLE),
        ("columns", "table_schema = %s", f"table_name, column_name, ordinal_position, {_COLUMN}"),
        (
            "key_column_usage",
            "constraint_schema = %s AND table_schema = %s",
            "table_name, constraint_name, ordinal_position, column_name, referenced_table_schema,"
            " referenced_table_name, referenced_column_name",
        ),
    )
)


async def version(connection: MySQLConnection, database: str) -> str:
    """The version of the schema: a short value from one query. The full description takes three queries."""
    rows = await connection.run(_VERSION, (database,) * 4)
    return " ".join(sorted("/".join(_texts(row)) for row in rows))


async def tables(connection: MySQLConnection, database: str) -> list[TableInfo]:
    """The tables and views, ordered by name. What exceeds the limits is left out, even in the middle of a table."""
    found: dict[str, TableInfo] = {}
    for row in await connection.run(_TABLES, (database,)):
        name, kind, comment = _texts(row)
        is_view = kind != "BASE TABLE"
        # MySQL gives every view this comment.
        said = None if is_view and comment == "VIEW" else comment or None
        found[name] = TableInfo(schema="", name=name, is_view=is_view, comment=said, columns=[])
    for row in await connection.run(_COLUMNS, (database,)) if found else ():
        name, column, type_, nullable, column_comment = _texts(row)
        if name in found:
            info = ColumnInfo(name=column, type=type_, required=nullable == "NO", comment=column_comment or None)
            found[name].columns.append(info)
    found = {name: table for name, table in found.items() if table.columns}
    if found:
        await _add_keys(connection, database, found)
    return list(found.values())


async def _add_keys(connection: MySQLConnection, database: str, found: dict[str, TableInfo]) -> None:
    rows = [_texts(row) for row in await connection.run(_KEYS, (database, database))]
    if len(rows) == MAX_KEYS:
        # The last one may be incomplete.
        last = rows[-1][:2]
        rows = [row for row in rows if row[:2] != last]
    foreign: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for name, constraint, column, target_schema, target, target_column in rows:
        if name not in found:
            continue
        if constraint == "PRIMARY":
            found[name].primary_key += (column,)
        elif target_schema == database and target in found:
            foreign.setdefault((name, constraint, target), []).append((column, target_column))
    for (name, _, target), pairs in foreign.items():
        columns, targets = zip(*pairs, strict=True)
        found[name].references.append(Reference(columns=columns, table=("", target), target_columns=targets))


def _texts(row: Sequence[Any]) -> list[str]:
    """Decodes a row: the session returns bytes."""
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "") for value in row]
