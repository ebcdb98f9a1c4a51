"""Showing results as text: a struct line by line, a list as a table that fits the terminal."""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.upkeep.reconcile.findings import Report

SHOWN = 100
"""The most lines of a table, unless a command's options say otherwise. `--json` prints all."""
_FILE_WIDTH = 250
"""Output to a file or another program is not limited to a terminal's width."""
_GAP = 2
_SHORT_UUID = 8
"""The length of a shortened uuid. Commands accept such a prefix if it is unique."""
_NARROWEST = 20
"""The least width to which the last column is wrapped before a column is left out."""
_NONE = "-"
_UUID = re.compile(r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A list that can be long, with the most informative columns first. `--json` prints all of `rows`, and nothing
    else."""

    rows: list[Any]
    total: int
    """The number of all of them, shown or not."""
    noun: str
    """What they are, in the plural."""
    note: str = ""
    """A sentence about all of them, shown beneath the table."""
    max_rows: int | None = None
    """The maximum that is shown."""

    @property
    def summary(self) -> str:
        shown = len(self.rows[: self.max_rows])
        counted = f"{shown} of {self.total} {self.noun}" if shown < self.total else _counted(self.total, self.noun)
        return "; ".join(filter(None, (counted, self.note)))


def show(result: Any) -> None:
    """Prints a result as text to standard output."""
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH, highlight=False)
    if result is None:
        return
    if isinstance(result, Report):
        _show_report(console, result)
    elif isinstance(result, Rows):
        _show_rows(console, result.rows[: result.max_rows])
        if result.total:
            console.print(result.summary, markup=False, soft_wrap=True)
    elif isinstance(result, list):
        _show_rows(console, result)
    else:
        for name, value in _fields(result).items():
            console.print(f"{name}  {_text(name, value)}", markup=False, soft_wrap=True)


def _show_report(console: Console, report: Report) -> None:
    for title, found in (("violations", report.violations), ("notes", report.notes)):
        if found:
            console.print(_counted(len(found), title), style="bold")
            _show_rows(console, found)
    console.print("ok" if report.ok else "not ok")


def _counted(number: int, noun: str) -> str:
    """`noun` is in the plural."""
    return f"{number} {noun.removesuffix('s') if number == 1 else noun}"


def _show_rows(console: Console, rows: Sequence[Any]) -> None:
    if not rows:
        console.print("none")
        return
    names = list(_fields(rows[0]))
    cells = [[_text(name, value) for name, value in _fields(row).items()] for row in rows]
    if not _fits(names, cells, console.width):
        cells = [[_UUID.sub(lambda found: found[1][:_SHORT_UUID], cell) for cell in row] for row in cells]
        names, cells = _without_empty(names, cells)
    shown = _columns(names, cells, console.width)
    table = Table(*(_title(name) for name in names[:shown]), box=None, header_style="bold", pad_edge=False)
    for row in cells:
        table.add_row(*map(Text, row[:shown]))
    for column in table.columns[:-1]:
        column.no_wrap = True
    table.columns[-1].overflow = "fold"
    console.print(table)
    if shown < len(names):
        console.print(f"no room for {', '.join(names[shown:])}: --json shows all", style="dim", soft_wrap=True)


def _without_empty(names: list[str], cells: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Without the columns in which no row has anything."""
    kept = [column for column in range(len(names)) if any(row[column] != _NONE for row in cells)] or [0]
    return [names[column] for column in kept], [[row[column] for column in kept] for row in cells]


def _columns(names: list[str], cells: list[list[str]], width: int) -> int:
    """How many of the first columns fit, the last of them wrapped."""
    widths = _widths(names, cells)
    count = len(names)
    while count > 1 and sum(widths[: count - 1]) + _GAP * (count - 1) + min(widths[count - 1], _NARROWEST) > width:
        count -= 1
    return count


def _fits(names: list[str], cells: list[list[str]], width: int) -> bool:
    return sum(_widths(names, cells)) + _GAP * (len(names) - 1) <= width


def _widths(names: list[str], cells: list[list[str]]) -> list[int]:
    def widest(column: int) -> int:
        lines = [line for row in cells for line in row[column].split("\n")]
        return max(len(_title(names[column])), *map(len, lines))

    return [widest(column) for column in range(len(names))]


def _title(name: str) -> str:
    return name.removesuffix("_bytes")


def _fields(result: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(result, builtin_types=(datetime,))
    return fields


def _text(name: str, value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(key, one)}" for key, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return "\n".join(_text(name, one) for one in value) or _NONE
    if name.endswith("_bytes"):
        return size_text(value)
    return _printable(str(value))


def _printable(text: str) -> str:
    """Escapes what could control a terminal: tenants choose names, and engines write error messages."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def size_text(count: float) -> str:
    """Formats bytes as storage limits count them: a GB is 2^30."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"
