"""What a database has beside its tables: views, triggers and routines, compared by fingerprints.

The server adds up what it stores, so that it takes no memory here, however much a tenant has defined. Of views the
columns and the checks are compared, not the query: a server writes it anew when it reads a dump, and a later version
may write it otherwise. Who defined something is not compared: in a restored copy that is the tenant. Nobody has the
right to make events.
"""

import hashlib
from collections.abc import Iterable

from app.engines.dumping import Content, ContentKind
from app.engines.mysql.connection import MySQLConnection

_VIEWS, _TRIGGERS, _ROUTINES = "views", "triggers", "routines"
# What they are, where information_schema lists them, by which schema, and what is compared of each.
_PARTS = (
    (_VIEWS, "views", "table_schema", ("table_name", "security_type", "check_option")),
    (
        _TRIGGERS,
        "triggers",
        "trigger_schema",
        (
            "trigger_name",
            "event_object_table",
            "action_timing",
            "event_manipulation",
            "action_order",
            "{action_statement}",
        ),
    ),
    (
        _ROUTINES,
        "routines",
        "routine_schema",
        (
            "routine_type",
            "routine_name",
            "data_type",
            "is_deterministic",
            "sql_data_access",
            "security_type",
            "routine_comment",
            "{routine_definition}",
        ),
    ),
    (
        _ROUTINES,
        "parameters",
        "specific_schema",
        ("specific_name", "routine_type", "ordinal_position", "parameter_mode", "parameter_name", "data_type"),
    ),
)
# Asked for only where there are views: for all columns a server opens every table.
_COLUMNS = (_VIEWS, "columns", "table_schema", ("table_name", "ordinal_position", "column_name"))
_OF_VIEWS = (
    " AND table_name IN (SELECT v.table_name FROM information_schema.views v WHERE v.table_schema = '{database}')"
)
_Part = tuple[str, str, str, tuple[str, ...]]


async def definitions(administrator: MySQLConnection, database: str) -> list[Content]:
    """One entry for each kind, even where there are no such objects. They are not of one moment: definitions aren't
    part of any transaction."""
    rows = await administrator.run(_statement(_PARTS, database))
    if any(kind == _VIEWS and count for kind, count, *_ in rows):
        rows += await administrator.run(_statement([_COLUMNS], database) + _OF_VIEWS.format(database=database))
    return [
        _content(kind, [row[1:] for row in rows if row[0] == kind]) for kind in dict.fromkeys(row[0] for row in rows)
    ]


def unchanged(before: list[Content], after: list[Content]) -> list[Content]:
    """The kinds that stayed the same between two readings."""
    return [one for one in before if one in after]


def _statement(parts: Iterable[_Part], database: str) -> str:
    return " UNION ALL ".join(_one(*part, database) for part in parts)


def _one(kind: str, listed: str, schema: str, compared: tuple[str, ...], database: str) -> str:
    """A query for the number of rows that describe objects of one kind, and two sums over them."""
    values = ", ".join(f"COALESCE({_value(name, database)}, '')" for name in compared)
    digest = f"SHA2(CONCAT_WS('/', {values}), 256)"
    sums = ", ".join(
        f"COALESCE(BIT_XOR(CAST(CONV(SUBSTRING({digest}, {at}, 16), 16, 10) AS UNSIGNED)), 0)" for at in (1, 17)
    )
    return f"SELECT '{kind}', COUNT(*), {sums} FROM information_schema.{listed} WHERE {schema} = '{database}'"  # noqa: S608 - names of ours


def _value(name: str, database: str) -> str:
    """The SQL expression for a compared column. Braces around its name mark a text of the tenant's, which may name its
    database; that has another name in a copy."""
    return f"REPLACE({name[1:-1]}, '{database}', '')" if name.startswith("{") else name


def _content(kind: str, compared: list[tuple[object, ...]]) -> Content:
    written = "\n".join(str(value) for row in compared for value in row)
    count = int(str(compared[0][0]))
    return Content(
        name=kind,
        kind=ContentKind.DEFINITIONS,
        rows=count,
        fingerprint=hashlib.sha256(written.encode()).hexdigest()[:32],
    )
