"""Warnings about PostgreSQL statements that destroy, block or surprise; the rules' names are squawk's where it has one.

A table that the script makes itself is empty and nobody waits for it, so the rules about blocking and about rows that
are there already leave it alone.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from postgast.pg_query_pb2 import AlterTableType, ConstrType, Node, ObjectType

from app.dialects.analysis import Analysis, Remark, StatementSummary
from app.dialects.postgres.lexer import tokens
from app.dialects.postgres.scripts import names
from app.dialects.tokens import TokenKind

MAX_NAME_BYTES = 63
_LONG_WORD = re.compile(r"[\w$]{64}")
_LONG_NAME = re.compile(r'"[^"]{64}|[^\x00-\x7f]{2}[^\s"]{14}')


@dataclass(slots=True)
class PostgresNotices:
    """Sees the statements of a script in their order."""

    analysis: Analysis
    _made: set[str] = field(default_factory=set)

    def see(self, node: Node, what: StatementSummary, offset: int) -> None:
        which = str(node.WhichOneof("node"))
        if rule := _RULES.get(which):
            for name, message in rule(getattr(node, which), self._made):
                self.analysis.notice(name, offset, message)
        if what.makes and what.object and what.object_type in ("table", "materialized view"):
            self._made.add(what.object)

    def see_names(self, script: str) -> None:
        """The parser has cut them already, so they are looked for in the text."""
        if not (_LONG_WORD.search(script) or _LONG_NAME.search(script)):
            return
        for kind, start, end in tokens(script):
            name = script[start:end].strip('"') if kind in (TokenKind.WORD, TokenKind.QUOTED_NAME) else ""
            if len(name.encode()) > MAX_NAME_BYTES:
                self.analysis.notice("identifier-too-long", start, f"{name} is longer than 63 bytes and will be cut")


def _drop(node: Any, made: set[str]) -> Iterator[Remark]:
    dropped = ", ".join(names.of(item) for item in node.objects)
    match node.remove_type:
        case ObjectType.OBJECT_TABLE:
            yield "ban-drop-table", f"DROP TABLE deletes {dropped} with all rows"
        case ObjectType.OBJECT_SCHEMA:
            yield "ban-drop-schema", f"DROP SCHEMA deletes {dropped}, with CASCADE everything in it"
        case ObjectType.OBJECT_MATVIEW | ObjectType.OBJECT_SEQUENCE | ObjectType.OBJECT_TYPE:
            yield "ban-drop-object", f"{dropped} is deleted, with CASCADE also what depends on it"
        case ObjectType.OBJECT_INDEX:
            yield "require-concurrent-index-deletion", f"DROP INDEX {dropped} blocks reads and writes of its table"
        case ObjectType.OBJECT_EXTENSION:
            yield "ban-drop-extension", f"DROP EXTENSION {dropped} deletes its types and functions"


def _truncate(node: Any, made: set[str]) -> Iterator[Remark]:
    emptied = ", ".join(names.of(item) for item in node.relations)
    if node.behavior == 2:
        yield "ban-truncate-cascade", f"TRUNCATE … CASCADE also empties the tables that refer to {emptied}"
    else:
        yield "ban-truncate", f"TRUNCATE deletes all rows of {emptied}"


def _delete(node: Any, made: set[str]) -> Iterator[Remark]:
    if not node.HasField("where_clause"):
        yield "where-require", f"DELETE without WHERE deletes all rows of {names.relation(node.relation)}"


def _update(node: Any, made: set[str]) -> Iterator[Remark]:
    if not node.HasField("where_clause"):
        yield "where-require", f"UPDATE without WHERE changes all rows of {names.relation(node.relation)}"


def _index(node: Any, made: set[str]) -> Iterator[Remark]:
    table = names.relation(node.relation)
    if table not in made:
        yield "require-concurrent-index-creation", f"CREATE INDEX blocks writes to {table} while it is built"
        if node.unique:
            yield "unique-index-on-rows", f"CREATE UNIQUE INDEX fails if {table} holds duplicates"


def _rename(node: Any, made: set[str]) -> Iterator[Remark]:
    name = names.relation(node.relation) if node.HasField("relation") else ""
    if name in made:
        return
    match node.rename_type:
        case ObjectType.OBJECT_TABLE | ObjectType.OBJECT_VIEW:
            yield "renaming-table", f"renaming {name} breaks whoever still uses the old name"
        case ObjectType.OBJECT_COLUMN:
            yield "renaming-column", f"renaming {name}.{node.subname} breaks whoever still uses the old name"


def _alter_table(node: Any, made: set[str]) -> Iterator[Remark]:
    table = names.relation(node.relation)
    for command in (item.alter_table_cmd for item in node.cmds):
        if command.subtype == AlterTableType.AT_DropColumn:
            yield "ban-drop-column", f"DROP COLUMN deletes {table}.{command.name} in all rows"
        if table not in made and (rule := _COMMANDS.get(command.subtype)):
            yield from rule(table, command)


def _add_column(table: str, command: Any) -> Iterator[Remark]:
    column = getattr(command, "def").column_def
    kinds = {item.constraint.contype for item in column.constraints}
    default = next(
        (c.constraint for c in column.constraints if c.constraint.contype == ConstrType.CONSTR_DEFAULT), None
    )
    filled = default is not None or kinds & {ConstrType.CONSTR_IDENTITY, ConstrType.CONSTR_GENERATED}
    serial = names.type_name(column.type_name).split(".")[-1] in ("serial", "bigserial", "smallserial")
    if kinds & {ConstrType.CONSTR_NOTNULL, ConstrType.CONSTR_PRIMARY} and not filled and not serial:
        yield (
            "adding-required-field",
            f"{table}.{column.colname} is NOT NULL without a default: fails if there are rows",
        )
    if ConstrType.CONSTR_GENERATED in kinds or ConstrType.CONSTR_IDENTITY in kinds or serial:
        yield "adding-field-with-default", f"{table} is rewritten, and blocked meanwhile, to fill {column.colname}"
    elif default is not None and default.raw_expr.HasField("func_call"):
        yield "adding-field-with-default", f"{table} may be rewritten, and blocked meanwhile, to fill {column.colname}"
    if ConstrType.CONSTR_UNIQUE in kinds or ConstrType.CONSTR_PRIMARY in kinds:
        yield (
            "disallowed-unique-constraint",
            f"the index for {table}.{column.colname} is built while {table} is blocked",
        )
    if ConstrType.CONSTR_FOREIGN in kinds:
        yield "adding-foreign-key-constraint", f"a foreign key on {table} blocks writes to both tables"


def _add_constraint(table: str, command: Any) -> Iterator[Remark]:
    constraint = getattr(command, "def").constraint
    match constraint.contype:
        case ConstrType.CONSTR_FOREIGN if not constraint.skip_validation:
            yield "adding-foreign-key-constraint", f"all rows of {table} are checked while writes to both tables wait"
        case ConstrType.CONSTR_CHECK if not constraint.skip_validation:
            yield (
                "constraint-missing-not-valid",
                f"all rows of {table} are checked while it is blocked; NOT VALID doesn't",
            )
        case ConstrType.CONSTR_UNIQUE | ConstrType.CONSTR_PRIMARY if not constraint.indexname:
            yield "disallowed-unique-constraint", f"an index is built while {table} is blocked, and fails on duplicates"
        case ConstrType.CONSTR_EXCLUSION:
            yield "adding-exclusion-constraint", f"an index is built while {table} is blocked"


def _change_type(table: str, command: Any) -> Iterator[Remark]:
    yield "changing-column-type", f"{table} may be rewritten, and blocked meanwhile, to change {command.name}"


def _set_not_null(table: str, command: Any) -> Iterator[Remark]:
    yield "adding-not-nullable-field", f"fails if {table}.{command.name} holds NULL, and blocks {table} while it looks"


def _drop_not_null(table: str, command: Any) -> Iterator[Remark]:
    yield "ban-drop-not-null", f"{table}.{command.name} may be NULL from now on, which its readers may not expect"


def _drop_constraint(table: str, command: Any) -> Iterator[Remark]:
    yield "ban-drop-constraint", f"nothing enforces {command.name} on {table} any more"


def _domain(node: Any, made: set[str]) -> Iterator[Remark]:
    if any(item.constraint.contype == ConstrType.CONSTR_CHECK for item in node.constraints):
        yield "ban-create-domain-with-constraint", "changing a domain's check later blocks every table that uses it"


def _enum(node: Any, made: set[str]) -> Iterator[Remark]:
    if node.new_val and not node.old_val:
        yield "enum-value-in-transaction", f"the new value {node.new_val} can't be used before the blueprint has ended"


def _lock(node: Any, made: set[str]) -> Iterator[Remark]:
    locked = ", ".join(names.of(item) for item in node.relations)
    yield "explicit-lock", f"LOCK holds {locked} until the whole blueprint has ended"


def _rewritten(verb: str) -> Callable[[Any, set[str]], Iterator[Remark]]:
    def rewrites(node: Any, made: set[str]) -> Iterator[Remark]:
        yield "blocking-rewrite", f"{verb} blocks {names.relation(node.relation)} while it rewrites it"

    return rewrites


_COMMANDS: dict[int, Callable[[str, Any], Iterator[Remark]]] = {
    AlterTableType.AT_AddColumn: _add_column,
    AlterTableType.AT_AddConstraint: _add_constraint,
    AlterTableType.AT_AlterColumnType: _change_type,
    AlterTableType.AT_SetNotNull: _set_not_null,
    AlterTableType.AT_DropNotNull: _drop_not_null,
    AlterTableType.AT_DropConstraint: _drop_constraint,
}
_RULES: dict[str, Callable[[Any, set[str]], Iterator[Remark]]] = {
    "drop_stmt": _drop,
    "truncate_stmt": _truncate,
    "delete_stmt": _delete,
    "update_stmt": _update,
    "index_stmt": _index,
    "rename_stmt": _rename,
    "alter_table_stmt": _alter_table,
    "create_domain_stmt": _domain,
    "alter_enum_stmt": _enum,
    "lock_stmt": _lock,
    "cluster_stmt": _rewritten("CLUSTER"),
    "reindex_stmt": _rewritten("REINDEX"),
    "refresh_mat_view_stmt": _rewritten("REFRESH"),
}
