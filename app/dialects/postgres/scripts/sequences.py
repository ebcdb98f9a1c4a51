"""Which statements set a sequence by setval, which no rollback undoes: neither a failure's nor a dry run's.

What the text doesn't show, such as setval in a trigger or in a function that was there before, isn't found.
"""

import re
from typing import Any

from postgast import walk
from postgast.pg_query_pb2 import AlterTableType, ConstrType, FuncCall, Node, RangeVar

from app.dialects.postgres.scripts import bodies, names

NOTICE = (
    "setval is not undone when the blueprint fails, and a dry run leaves the statement out; "
    "ALTER SEQUENCE … RESTART WITH is undone"
)
_SETVAL = "setval"
_WORD = re.compile(r"\w+")
_SERIALS = frozenset({"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"})
_EVALUATED = frozenset(
    {
        "select_stmt",
        "insert_stmt",
        "update_stmt",
        "delete_stmt",
        "merge_stmt",
        "call_stmt",
        "create_table_as_stmt",
        "explain_stmt",
    }
)
"""Statements that call the functions in them. Others keep the call for later."""
_PART = r'("(?:[^"]|"")+"|[^".\s]+)'
_QUALIFIED = re.compile(rf"\s*(?:{_PART}\s*\.\s*)?{_PART}\s*")

Name = tuple[str, str]
"""Schema and name. A schema that the script leaves out is taken for `public`."""


class SequenceSetters:
    """Finds the statements that set a sequence. Ask it for each statement of a script, in order."""

    def __init__(self, script: str) -> None:
        self._possible = _SETVAL in script.lower()
        self._functions = {_SETVAL}
        """`setval`, and the functions that the script makes and that call it."""
        self._prepared: set[str] = set()
        self._made: set[Name] = set()
        """Sequences that the script makes: a rollback removes them."""
        self._made_columns: set[tuple[Name, str]] = set()
        """Columns with a sequence of their own, where the script makes that sequence."""

    def sets(self, node: Node, text: str) -> bool:
        """Whether the statement sets a sequence that stays when the transaction is rolled back."""
        if not self._possible:
            return False
        match node.WhichOneof("node"):
            case "create_seq_stmt":
                if not node.create_seq_stmt.if_not_exists:
                    self._made.add(_name(node.create_seq_stmt.sequence))
            case "create_stmt":
                if not node.create_stmt.if_not_exists:
                    self._note_columns(node.create_stmt)
            case "alter_table_stmt":
                self._note_identities(node.alter_table_stmt)
            case "create_function_stmt":
                self._note_function(node.create_function_stmt)
            case "prepare_stmt" if self._calls(node, text):
                self._prepared.add(node.prepare_stmt.name)
            case "execute_stmt":
                return node.execute_stmt.name in self._prepared or self._calls(node, text)
            case "do_stmt":
                return self._in_body(node.do_stmt.args)
            case which if which in _EVALUATED:
                return self._calls(node, text)
        return False

    def _calls(self, node: Node, text: str) -> bool:
        # A walk through the tree takes far longer than the words do, and a dump has a megabyte of rows.
        if self._functions.isdisjoint(_WORD.findall(text.lower())):
            return False
        for _, found in walk(node):
            if isinstance(found, FuncCall):
                called = found.funcname[-1].string.sval.lower()
                if called in self._functions and not (called == _SETVAL and self._is_made(found)):
                    return True
        return False

    def _is_made(self, call: FuncCall) -> bool:
        argument = _uncast(call.args[0]) if call.args else Node()
        if argument.WhichOneof("node") == "func_call":
            inner = argument.func_call
            if inner.funcname[-1].string.sval == "pg_get_serial_sequence" and len(inner.args) > 1:
                table, column = _text(inner.args[0]), _text(inner.args[1])
                return (_read(table), column) in self._made_columns
        return _read(_text(argument)) in self._made

    def _note_columns(self, table: Any) -> None:
        for element in table.table_elts:
            if element.WhichOneof("node") != "column_def":
                continue
            column = element.column_def
            if names.type_name(column.type_name).split(".")[-1] in _SERIALS:
                self._note_column(table.relation, column.colname, None)
            for one in column.constraints:
                if one.constraint.contype == ConstrType.CONSTR_IDENTITY:
                    self._note_column(table.relation, column.colname, _named(one.constraint.options))

    def _note_identities(self, statement: Any) -> None:
        for command in (item.alter_table_cmd for item in statement.cmds):
            if command.subtype == AlterTableType.AT_AddIdentity:
                options = getattr(command, "def").constraint.options
                self._note_column(statement.relation, command.name, _named(options))

    def _note_column(self, table: RangeVar, column: str, sequence: Name | None) -> None:
        schema, name = _name(table)
        self._made.add(sequence or (schema, f"{name}_{column}_seq"))
        self._made_columns.add(((schema, name), column))

    def _note_function(self, function: Any) -> None:
        calls = self._in_body(function.options) or any(
            isinstance(found, FuncCall) and found.funcname[-1].string.sval.lower() in self._functions
            for _, found in walk(function.sql_body)
        )
        if calls:
            self._functions.add(function.funcname[-1].string.sval.lower())

    def _in_body(self, options: Any) -> bool:
        text = bodies.text_of(options)
        return text is not None and bodies.read(text).first(self._functions) is not None


def _named(options: Any) -> Name | None:
    """The sequence that an identity column names, if it does."""
    for option in options:
        if option.def_elem.defname == "sequence_name":
            *schema, name = (item.string.sval for item in option.def_elem.arg.list.items)
            return schema[-1] if schema else "public", name
    return None


def _name(found: RangeVar) -> Name:
    return found.schemaname or "public", found.relname


def _read(text: str) -> Name | None:
    """A name within a literal, as regclass reads it."""
    if (match := _QUALIFIED.fullmatch(text)) is None:
        return None
    schema, name = (
        part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in match.groups(default="")
    )
    return schema or "public", name


def _uncast(node: Node) -> Node:
    while node.WhichOneof("node") == "type_cast":
        node = node.type_cast.arg
    return node


def _text(node: Node) -> str:
    """The text of a literal; empty for anything else."""
    return str(_uncast(node).a_const.sval.sval)
