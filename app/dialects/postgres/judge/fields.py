"""A call that looks like a column: to PostgreSQL `x.f` and `(x).f` are `f(x)` where there is no column of that name.

A value that is a row in any case has only functions of rows, of which none does harm. A single value has all functions
that take one.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from app.dialects.verdict import Refused
from app.dialects.word_lists import words

_ROWS = words(
    """
    json_each json_each_text jsonb_each jsonb_each_text
    json_populate_record json_populate_recordset jsonb_populate_record jsonb_populate_recordset
    """
)
"""Functions whose results are rows whatever they are given."""
NAMED_VALUES = words("json_array_elements json_array_elements_text jsonb_array_elements jsonb_array_elements_text")
"""Functions whose column is named `value`, whatever they are called in FROM: they declare it so."""


def check(nodes: list[Any]) -> None:
    """Checks a statement; `nodes` are all of its nodes. Raises `Refused`."""
    columns: dict[str, set[str]] = {}
    for node in nodes:
        if node.DESCRIPTOR.name == "RangeFunction":
            _add_columns(node, columns)
    for node in nodes:
        if node.DESCRIPTOR.name == "A_Indirection":
            _check_selection(node)
        elif node.DESCRIPTOR.name == "ColumnRef":
            _check_column(node, columns)


def _add_columns(function: Any, columns: dict[str, set[str]]) -> None:
    """Adds, under the name by which the function stands in FROM, the columns that it has there for certain. Which of
    several functions of one name a column belongs to depends on where it stands, so it has to be a column of each."""
    called = _called(_unwrapped(function.functions[0].list.items[0]))
    if called in _ROWS:
        return
    name = function.alias.aliasname or called
    if not name:
        raise Refused("What stands in FROM needs a name.")
    own = _columns(function, called) | {"ordinality"}  # which is no function's name
    columns[name] = columns.get(name, own) & own


def _columns(function: Any, called: str) -> set[str]:
    """The function's columns. A name that a column is given, or its own, takes the place of the function's name."""
    given = {column.string.sval for column in function.alias.colnames}
    given.update(definition.colname for definition in _definitions(function))
    return given or {"value" if called in NAMED_VALUES else function.alias.aliasname or called}


def _called(node: Any) -> str:
    return str(node.funcname[-1].string.sval) if node.DESCRIPTOR.name == "FuncCall" else ""


def _definitions(function: Any) -> Iterator[Any]:
    for node in [*function.coldeflist, *(each for one in function.functions for each in one.list.items[1].list.items)]:
        yield node.column_def


def _check_selection(node: Any) -> None:
    is_row = _called(_unwrapped(node.arg)) in _ROWS
    for place, part in enumerate(node.indirection):
        if part.HasField("string") and not (is_row and place == 0):
            raise Refused(
                f"A part of a value may not be chosen by the name {part.string.sval}: it might be a function."
            )


def _check_column(node: Any, columns: dict[str, set[str]]) -> None:
    if len(node.fields) < 2 or not node.fields[-1].HasField("string"):
        return
    relation, name = node.fields[-2].string.sval, node.fields[-1].string.sval
    if relation in columns and name not in columns[relation]:
        raise Refused(f"{relation} is a function's result, and {name} is no column that it has for certain.")


def _unwrapped(node: Message) -> Any:
    return getattr(node, node.WhichOneof("node") or "")
