"""What a tenant's database holds, for a prompt: read by the SELECT-only account, from information_schema alone."""

from collections.abc import Sequence
from typing import Any

from app.engines.mysql.connections import Connection
from app.engines.querying import ColumnInfo, Reference, TableInfo

_MOST_COLUMNS = 20_000

# One table of information_schema at a time: a join of two takes MariaDB a tenth of a second.
_TABLES = "SELECT table_name, table_type, table_comment FROM information_schema.tables WHERE table_schema = %s"
_COLUMNS = f"""
SELECT table_name, column_name, column_type, is_nullable, column_comment FROM information_schema.columns
WHERE table_schema = %s ORDER BY table_name, ordinal_position LIMIT {_MOST_COLUMNS}
"""  # noqa: S608 - a number of ours
_KEYS = """
SELECT table_name, constraint_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = %s AND constraint_schema = %s ORDER BY table_name, constraint_name, ordinal_position
"""
# Of each table of information_schema the number of rows, and one number in which every row has a part. MySQL 9 has no
# MD5 any more.
_VERSION = "\nUNION ALL\n".join(
    f"SELECT '{name}', COUNT(*), COALESCE(BIT_XOR(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', {columns}), 256), 16), 16, 10)"  # noqa: S608 - names of ours
    f" AS UNSIGNED)), 0) FROM information_schema.{name} WHERE {ours}"
    for name, ours, columns in (
        ("tables", "table_schema = %s", "table_name, table_type, table_comment"),
        (
            "columns",
            "table_schema = %s",
            "table_name, column_name, ordinal_position, column_type, is_nullable, column_comment",
        ),
        (
            "key_column_usage",
            "constraint_schema = %s AND table_schema = %s",
            "table_name, constraint_name, ordinal_position, column_name, referenced_table_schema,"
            " referenced_table_name, referenced_column_name",
        ),
    )
)


async def version(connection: Connection, database: str) -> str:
    """One short answer to one query, where reading it all takes three and their rows."""
    rows = await connection.run(_VERSION, (database,) * 4)
    return " ".join(sorted("/".join(_texts(row)) for row in rows))


async def tables(connection: Connection, database: str) -> list[TableInfo]:
    """In the order of their names."""
    found: dict[str, TableInfo] = {}
    about = {row[0]: row[1:] for row in [_texts(row) for row in await connection.run(_TABLES, (database,))]}
    for row in await connection.run(_COLUMNS, (database,)):
        name, column, type_, nullable, column_comment = _texts(row)
        kind, comment = about.get(name, ("BASE TABLE", ""))
        table = found.get(name)
        if table is None:
            is_view = kind != "BASE TABLE"
            # MySQL gives every view this comment.
            said = None if is_view and comment == "VIEW" else comment or None
            table = found[name] = TableInfo(schema="", name=name, is_view=is_view, comment=said, columns=[])
        info = ColumnInfo(name=column, type=type_, required=nullable == "NO", comment=column_comment or None)
        table.columns.append(info)
    if found:
        await _add_keys(connection, database, found)
    return list(found.values())


async def _add_keys(connection: Connection, database: str, found: dict[str, TableInfo]) -> None:
    foreign: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for row in await connection.run(_KEYS, (database, database)):
        name, constraint, column, target_schema, target, target_column = _texts(row)
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
    """The session leaves octets as they come."""
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "") for value in row]
