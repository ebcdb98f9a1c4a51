"""What sqlglot says of MySQL statements, for the kinds that it knows well."""

import logging

import sqlglot
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from app.dialects.analysis import Finding, StatementSummary
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.mysql.splitter import SplitStatement
from app.dialects.tokens import TokenKind
from app.dialects.word_lists import words

# It would log each statement that it takes as opaque.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# What it reads in all is bounded: it takes about a second for 600 kB, and as long for a few thousand tiny statements.
_LEAST_OF_A_STATEMENT = 200
_MOST_OF_A_STATEMENT = 20_000
_MOST_OF_A_SCRIPT = 100_000
_KNOWN_WELL = frozenset(
    {"CREATE TABLE", "CREATE TEMPORARY TABLE", "CREATE VIEW", "SELECT", "INSERT", "UPDATE", "DELETE"}
)
_UNKNOWN = words(
    """
    analyse ascii byte clob column_format columns compressed dec delayed distinctrow enforced fixed geomcollection
    geometry geometrycollection high_priority inet4 inet6 invisible linestring long low_priority middleint
    multilinestring multipoint multipolygon national nchar next nulls number period persistent point polygon quick
    raw srid stored unicode varchar2 vector visible {
    """
)
"""Each tells valid SQL that sqlglot doesn't know."""


class SecondOpinion:
    """On one script's statements."""

    def __init__(self) -> None:
        self._left = _MOST_OF_A_SCRIPT

    def error(self, script: str, statement: SplitStatement, what: StatementSummary) -> Finding | None:
        """Where a statement is wrong; None when it is well formed, or of a kind that sqlglot doesn't know well."""
        length = statement.end - statement.start
        if what.kind not in _KNOWN_WELL or length > min(_MOST_OF_A_STATEMENT, self._left):
            return None
        if _is_unknown_to_sqlglot(Reader(script, statement), what):
            return None
        self._left -= max(length, _LEAST_OF_A_STATEMENT)
        text = _without_marks(script, statement)
        try:
            sqlglot.parse(text, dialect="mysql", error_level=ErrorLevel.IMMEDIATE)
        except ParseError as error:
            found = error.errors[0] if error.errors else {}
            return _place(text, statement.start, found), _message(found)
        except (TokenError, RecursionError):
            # Our own lexer has read it, and depth alone is no fault.
            return None
        return None


def _is_unknown_to_sqlglot(reader: Reader, what: StatementSummary) -> bool:
    """Whether it has what sqlglot would call wrong, and servers take."""
    words = reader.words
    if not _UNKNOWN.isdisjoint(words):
        return True
    match what.kind:
        case "CREATE TABLE":
            # Each partition with its engine, as dumps have them.
            return "partition" in words
        case "SELECT":
            return "into" in words
        case "DELETE":
            return "*" in words
        case "UPDATE":
            return "ignore" in words or reader.find("default", "(") is not None
        case "INSERT":
            # Columns with their table's name, before the values.
            columns = words[: words.index(")")] if ")" in words else []
            return reader.find("default", "(") is not None or "." in columns
    return False


def _without_marks(script: str, statement: SplitStatement) -> str:
    """The statement with blanks for the marks of executable comments."""
    pieces = []
    at = statement.start
    for token in statement.tokens:
        if token.kind in (TokenKind.OPEN, TokenKind.CLOSE):
            pieces += [script[at : token.start], " " * (token.end - token.start)]
            at = token.end
    return "".join([*pieces, script[at : statement.end]])


def _place(text: str, start: int, found: dict[str, object]) -> int:
    line, column = found.get("line"), found.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return start
    begin = 0
    for _ in range(line - 1):
        begin = text.find("\n", begin) + 1
    return start + min(begin + max(column - len(str(found.get("highlight") or "")), 0), len(text))


def _message(found: dict[str, object]) -> str:
    near = str(found.get("highlight") or "").strip()
    what = str(found.get("description") or "syntax error").rstrip(".")
    return f'syntax error near "{near}": {what}' if near else f"syntax error: {what}"
