"""Warnings about PostgreSQL statements that destroy data; the rules' names are squawk's where it has one."""

from collections.abc import Callable, Iterator
from typing import Any

from postgast.pg_query_pb2 import AlterTableType, Node, ObjectType

from app.dialects.analysis import Remark
from app.dialects.postgres.scripts import names

_CASCADE = 2


def notices(node: Node) -> Iterator[Remark]:
    """What a statement destroys."""
    which = str(node.WhichOneof("node"))
    if rule := _RULES.get(which):
        yield from rule(getattr(node, which))


def _drop(node: Any) -> Iterator[Remark]:
    dropped = ", ".join(names.of(item) for item in node.objects)
    match node.remove_type:
        case ObjectType.OBJECT_TABLE:
            yield "ban-drop-table", f"DROP TABLE deletes {dropped} with all rows"
        case ObjectType.OBJECT_SCHEMA:
            yield "ban-drop-schema", f"DROP SCHEMA deletes {dropped}, with CASCADE everything in it"
        case ObjectType.OBJECT_MATVIEW | ObjectType.OBJECT_SEQUENCE | ObjectType.OBJECT_TYPE:
            yield "ban-drop-object", f"{dropped} is deleted, with CASCADE also what depends on it"
        case ObjectType.OBJECT_EXTENSION:
            yield "ban-drop-extension", f"DROP EXTENSION {dropped} deletes its types and functions"


def _truncate(node: Any) -> Iterator[Remark]:
    emptied = ", ".join(names.of(item) for item in node.relations)
    if node.behavior == _CASCADE:
        yield "ban-truncate-cascade", f"TRUNCATE … CASCADE also empties the tables that refer to {emptied}"
    else:
        yield "ban-truncate", f"TRUNCATE deletes all rows of {emptied}"


def _delete(node: Any) -> Iterator[Remark]:
    if not node.HasField("where_clause"):
        yield "where-require", f"DELETE without WHERE deletes all rows of {names.relation(node.relation)}"


def _update(node: Any) -> Iterator[Remark]:
    if not node.HasField("where_clause"):
        yield "where-require", f"UPDATE without WHERE changes all rows of {names.relation(node.relation)}"


def _alter_table(node: Any) -> Iterator[Remark]:
    for command in (item.alter_table_cmd for item in node.cmds):
        if command.subtype == AlterTableType.AT_DropColumn:
            column = f"{names.relation(node.relation)}.{command.name}"
            yield "ban-drop-column", f"DROP COLUMN deletes {column} in all rows"


_RULES: dict[str, Callable[[Any], Iterator[Remark]]] = {
    "drop_stmt": _drop,
    "truncate_stmt": _truncate,
    "delete_stmt": _delete,
    "update_stmt": _update,
    "alter_table_stmt": _alter_table,
}
