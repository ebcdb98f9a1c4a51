"""Judges SQL for PostgreSQL by PostgreSQL's own parser: an allow-list of nodes, functions and relations.

What no parse shows, such as a tenant's own operators, casts, views and triggers, is held in check by the role that
executes it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import Message
from postgast import pg_query_pb2 as tree

from app.dialects.errors import SqlError, TooDeep
from app.dialects.postgres.judge import fields as postgres_fields
from app.dialects.postgres.judge import functions, nodes
from app.dialects.postgres.lexer import tokens
from app.dialects.postgres.parser import on_deep_stack, parse_statements
from app.dialects.tokens import TokenKind
from app.dialects.verdict import Refused, SqlClass, Unreadable

_CHANGED = ("CMD_UPDATE", "CMD_DELETE")
_MODIFYING = ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt")


def classified(sql: str) -> list[tuple[str, SqlClass]]:
    """Each statement without comments, with its class. Raises `Refused`; `Unreadable` for what the parser doesn't
    take."""
    try:
        sql = _without_comments(sql)
        return on_deep_stack(
            lambda: [
                (sql[found.start : found.end].strip(), _class_of(getattr(found.node, found.name)))
                for found in parse_statements(sql)
            ]
        )
    except TooDeep:
        raise Refused("It is nested too deeply.") from None
    except SqlError as error:
        raise Unreadable(f"It can't be parsed: {error}.") from None


def _without_comments(sql: str) -> str:
    """The SQL without comments: the parser's library stumbles over a comment between two words that belong together,
    such as NULLS LAST."""
    pieces, end = [], 0
    for token in tokens(sql):
        if token.kind is TokenKind.COMMENT:
            pieces.append(sql[end : token.start])
            end = token.end
    return " ".join([*pieces, sql[end:]])


def _class_of(root: Message) -> SqlClass:
    kind = root.DESCRIPTOR.name
    if kind == "SelectStmt":
        _check(root, nodes.READING, functions.READING)
        return SqlClass.SELECT
    if kind == "ExplainStmt":
        if not root.query.HasField("select_stmt"):  # type: ignore[attr-defined]
            raise Refused("EXPLAIN is for reads alone.")
        _check(root, nodes.EXPLAINING, functions.READING, nodes.OPTIONS["explain"])
        return SqlClass.SELECT
    if kind == "VariableShowStmt":
        if root.name not in nodes.SETTINGS:  # type: ignore[attr-defined]
            raise Refused(f"The setting {root.name} is not one that a question may see.")  # type: ignore[attr-defined]
        return SqlClass.SELECT
    if kind in _MODIFYING:
        _check(root, nodes.WRITING, functions.WRITING)
        if any(inner is not root and inner.DESCRIPTOR.name in _MODIFYING for inner in _walk(root)):
            raise Refused("One statement changes rows inside another.")
        return SqlClass.WRITE
    if kind in nodes.CHANGING - nodes.READING and kind.endswith("Stmt"):
        _check(root, nodes.CHANGING, functions.WRITING, nodes.OPTIONS["ddl_batch"])
        return SqlClass.DDL_BATCH
    raise Refused(f"{_in_words(kind)} is not a statement that a question may become.")


def _check(
    root: Message, allowed: frozenset[str], callable_: frozenset[str], options: frozenset[str] = frozenset()
) -> None:
    statement = list(_walk(root))
    postgres_fields.check(statement)
    for node in statement:
        kind = node.DESCRIPTOR.name
        if kind not in allowed:
            raise Refused(f"{_in_words(kind)} is not allowed here.")
        if kind == "FuncCall":
            _check_function(node, callable_)
        elif kind == "DefElem":
            _check_option(node, options)
        elif kind in _CHECKS:
            _CHECKS[kind](node)


def _walk(root: Message) -> Iterator[Any]:
    """Every node, the wrappers of the tree left out."""
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if node.DESCRIPTOR.name != "Node":
            yield node
        for field, value in node.ListFields():
            if field.message_type is not None:
                waiting.extend(value if field.is_repeated else [value])


def _names(parts: Any) -> list[str]:
    return [part.string.sval for part in parts]


def _check_function(node: Any, callable_: frozenset[str]) -> None:
    *schema, name = _names(node.funcname)
    if schema not in ([], ["pg_catalog"]) or name not in callable_:
        raise Refused(f"The function {'.'.join([*schema, name])} is not one that a question may use.")


def _check_option(node: Any, options: frozenset[str]) -> None:
    if node.defnamespace or node.defname not in options:
        raise Refused(f"The option {node.defname} is not allowed here.")


def _check_select(node: Any) -> None:
    if node.HasField("into_clause"):
        raise Refused("SELECT INTO makes a table.")
    if node.locking_clause:
        raise Refused("A read may not lock rows.")


def _check_relation(node: Any) -> None:
    schema, name = node.schemaname, node.relname
    if node.catalogname:
        raise Refused("Another database may not be named.")
    if schema == "information_schema":
        if name not in nodes.INFORMATION_SCHEMA:
            raise Refused(f"information_schema.{name} is not one of the views that a question may read.")
    elif schema.startswith("pg_") or (not schema and name.startswith("pg_")):
        raise Refused("The system's own tables may not be used.")
    if node.relpersistence not in ("", "p"):
        raise Refused("Temporary and unlogged tables are not allowed.")


def _check_type(node: Any) -> None:
    *schema, name = _names(node.names)
    if node.pct_type or (schema and schema[0].startswith("pg_") and schema != ["pg_catalog"]):
        raise Refused("A type of the system's may not be named so.")
    # An array's type has the name of its elements' type, with an underscore before it.
    if name.lstrip("_") in nodes.REGISTERED_TYPES:
        raise Refused(f"The type {name} looks into the system's catalogs.")


def _check_operator(node: Any) -> None:
    *schema, _ = _names(node.name)
    if schema not in ([], ["pg_catalog"]):
        raise Refused("An operator may not be named with its schema.")


def _check_order(node: Any) -> None:
    if node.use_op:
        raise Refused("ORDER BY … USING is not allowed.")


def _check_condition(node: Any) -> None:
    _check_named(node.where_clause)


def _check_named(condition: Any) -> None:
    if not any(inner.DESCRIPTOR.name == "ColumnRef" for inner in _walk(condition)):
        raise Refused("Changing or deleting rows needs a WHERE that names a column.")


def _check_merge(node: Any) -> None:
    # What it inserts needs no condition.
    if any(tree.CmdType.Name(when.merge_when_clause.command_type) in _CHANGED for when in node.merge_when_clauses):
        _check_named(node.join_condition)


def _check_place(*fields: str) -> Callable[[Any], None]:
    """A check that refuses these fields: where things are stored, and with which parameters, is not for a question to
    say."""

    def check(node: Any) -> None:
        given = {field.name for field, _ in node.ListFields()}
        for field in fields:
            if field in given:
                raise Refused("Storage, inheritance and the like can't be set in a question.")

    return check


def _check_index(node: Any) -> None:
    _check_place("concurrent", "table_space", "options")(node)
    if node.access_method not in nodes.INDEX_METHODS:
        raise Refused(f"The index method {node.access_method} is not allowed.")


def _check_alteration(node: Any) -> None:
    if tree.ObjectType.Name(node.objtype) != "OBJECT_TABLE":
        raise Refused("Only tables may be altered.")


def _check_command(node: Any) -> None:
    command = tree.AlterTableType.Name(node.subtype)
    if command not in nodes.ADDITIONS:
        raise Refused("Only what adds to a table may alter it: columns, constraints, defaults.")


def _check_made_from_select(node: Any) -> None:
    made = tree.ObjectType.Name(node.objtype)
    if made not in ("OBJECT_TABLE", "OBJECT_MATVIEW") or node.is_select_into or not node.query.HasField("select_stmt"):
        raise Refused("A table is made from a SELECT alone.")


def _check_comment(node: Any) -> None:
    if tree.ObjectType.Name(node.objtype) not in nodes.COMMENTED:
        raise Refused("Only tables, columns, views and indexes may be commented on.")
    named = _names(node.object.list.items)
    _check_own(named[:-1] if tree.ObjectType.Name(node.objtype) == "OBJECT_COLUMN" else named)


def _check_view(node: Any) -> None:
    if node.replace:
        raise Refused("What is there may not be replaced.")


def _check_enum(node: Any) -> None:
    _check_own(_names(node.type_name))


def _check_own(names: list[str]) -> None:
    if any(name.startswith("pg_") or name == "information_schema" for name in names):
        raise Refused("The system's own schemas may not be changed.")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "SelectStmt": _check_select,
    "RangeVar": _check_relation,
    "TypeName": _check_type,
    "A_Expr": _check_operator,
    "SortBy": _check_order,
    "UpdateStmt": _check_condition,
    "DeleteStmt": _check_condition,
    "MergeStmt": _check_merge,
    "CreateStmt": _check_place("tablespacename", "options", "access_method", "inh_relations", "of_typename"),
    "Constraint": _check_place("indexspace", "access_method"),
    "IntoClause": _check_place("table_space_name", "options", "access_method"),
    "IndexStmt": _check_index,
    "AlterTableStmt": _check_alteration,
    "AlterTableCmd": _check_command,
    "CreateTableAsStmt": _check_made_from_select,
    "CommentStmt": _check_comment,
    "CreateEnumStmt": _check_enum,
    "ViewStmt": _check_view,
}


def _in_words(kind: str) -> str:
    """`DropStmt` as `Drop`."""
    return kind.removesuffix("Stmt").removesuffix("Clause")
