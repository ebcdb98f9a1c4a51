"""How a table's columns are selected so that what is printed is exactly what is stored.

The dump tools write what the server sends them. For some types that is less than what is stored: a FLOAT is sent with
six digits, an ENUM without its number, and text is converted to UTF-8, which not every character set survives.
"""

from collections.abc import Sequence
from typing import Any

from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.flavours import MARIADB
from app.engines.mysql.quoting import quote_name

_COLUMNS = """
SELECT column_name, data_type, character_set_name, numeric_scale FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_BOTH_WAYS = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1"})
"""Character sets of which every stored byte survives UTF-8 and back. Text in others is selected as bytes."""


async def selection(connection: MySQLConnection, database: str, table: str) -> dict[str, str]:
    """The table's columns in their order, each with the expression that selects it."""
    return _selected(connection, await connection.run(_COLUMNS, (database, table)))


async def held_selection(connection: MySQLConnection, database: str, table: str) -> dict[str, str]:
    """The same, and from now on to the end of the transaction the table's definition stays what it is."""
    held = f"SELECT 1 FROM {quote_name(table)} LIMIT 0"  # noqa: S608 - a quoted name
    return _selected(connection, (await connection.run_in_turn((held, ()), (_COLUMNS, (database, table))))[1])


def _selected(connection: MySQLConnection, rows: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    mariadb = connection.flavour is MARIADB
    return {
        _text(name): _expression(
            quote_name(_text(name)), _text(kind).lower(), _text(charset or ""), scale, mariadb=mariadb
        )
        for name, kind, charset, scale in rows
    }


def select_rows(columns: dict[str, str], table: str) -> str:
    """The query for a table's rows. It uses no index, so that they come in the order of the clustered one."""
    return f"SELECT {', '.join(columns.values())} FROM {quote_name(table)} USE INDEX ()"  # noqa: S608 - quoted names


def seed(columns: dict[str, str]) -> bytes:
    """The part of a fingerprint that stands for the columns."""
    return "\0".join([*columns, *columns.values(), ""]).encode("utf-8", "surrogateescape")


def _expression(name: str, kind: str, charset: str, scale: int | None, *, mariadb: bool) -> str:
    if kind in ("float", "double") and not mariadb:
        # As a number -0 would be read as an integer's; a plain cast to text has two digits too few.
        return f"CAST(CAST({name} AS JSON) AS CHAR)"
    if kind == "json":
        return _as_document(name)
    if kind == "float" or (kind == "double" and scale is not None):
        return f"CAST({name} * 1e0 AS CHAR)"
    if kind in ("enum", "set"):
        # By its number: the empty string may be a member, or what stands for a value that is none.
        return f"CAST({name} AS UNSIGNED)"
    if charset and charset not in _BOTH_WAYS:
        return f"CAST({name} AS BINARY)"
    return name


def inexact_documents(columns: dict[str, str], table: str) -> str | None:
    """A query for a row whose JSON would be different after it was printed and read; None for a table without JSON
    columns."""
    names = [quote_name(name) for name, expression in columns.items() if expression == _as_document(quote_name(name))]
    read = {name: f"CAST(CAST({name} AS CHAR) AS JSON)" for name in names}
    inexact = " OR ".join(
        f"NOT ({again} <=> {name}) OR CAST({again} AS CHAR) <> CAST({name} AS CHAR)" for name, again in read.items()
    )
    return f"SELECT 1 FROM {quote_name(table)} WHERE {inexact} LIMIT 1" if names else None  # noqa: S608 - quoted names


def _as_document(name: str) -> str:
    """The expression that selects a column of the type JSON. MariaDB has no such type, and stores the text."""
    return f"CAST({name} AS JSON)"


def _text(value: str | bytes) -> str:
    """The tools ask for some answers in bytes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
