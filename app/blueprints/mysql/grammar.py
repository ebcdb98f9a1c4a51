"""Whether MySQL statements are well formed, as far as that can be told without a server.

Own checks find what is surely wrong. For the kinds of statements that it knows well sqlglot gives a second opinion.
"""

import logging
from collections.abc import Iterator

import sqlglot
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from app.blueprints.mysql import forms, tables
from app.blueprints.mysql.kinds import Description
from app.blueprints.mysql.reader import Reader
from app.sql.mysql.lexer import Kind
from app.sql.mysql.splitter import Statement

# It would log each statement that it takes as opaque.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

MAX_PARENTHESES = 500
# What sqlglot reads in all is bounded: it takes about a second for 600 kB.
MAX_STATEMENT = 20_000
MAX_SCRIPT = 100_000
_KNOWN_WELL = frozenset(
    {"CREATE TABLE", "CREATE TEMPORARY TABLE", "CREATE VIEW", "SELECT", "INSERT", "UPDATE", "DELETE"}
)
_NEEDS_NAME = ("INSERT", "REPLACE", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "CALL")
_POSTGRES_ONLY = {
    ("on", "conflict", "("): "ON CONFLICT",
    ("on", "conflict", "do"): "ON CONFLICT",
    ("on", "conflict", "on"): "ON CONFLICT",
    ("always", "as", "identity"): "AS IDENTITY",
    ("by", "default", "as", "identity"): "AS IDENTITY",
    ("owner", "to"): "OWNER TO",
    ("execute", "function"): "EXECUTE FUNCTION",
    ("execute", "procedure"): "EXECUTE PROCEDURE",
    ("with", "time", "zone"): "WITH TIME ZONE",
    ("without", "time", "zone"): "WITHOUT TIME ZONE",
    (")", "not", "valid"): "NOT VALID",
    ("restart", "identity"): "RESTART IDENTITY",
    ("pg_catalog", "."): "pg_catalog",
    ("default", "values"): "DEFAULT VALUES",
}
_POSTGRES_SETTINGS = frozenset(
    {
        "search_path",
        "statement_timeout",
        "lock_timeout",
        "client_encoding",
        "standard_conforming_strings",
        "client_min_messages",
        "check_function_bodies",
        "default_tablespace",
        "default_table_access_method",
        "row_security",
        "xmloption",
    }
)
_MEANINGLESS = frozenset("[]\\")
# Valid SQL that sqlglot doesn't know, each told by one of these words.
_UNKNOWN_TO_SQLGLOT = frozenset(
    {
        "analyse",
        "ascii",
        "byte",
        "clob",
        "column_format",
        "columns",
        "compressed",
        "dec",
        "delayed",
        "distinctrow",
        "enforced",
        "fixed",
        "geomcollection",
        "geometry",
        "geometrycollection",
        "high_priority",
        "inet4",
        "inet6",
        "invisible",
        "linestring",
        "long",
        "low_priority",
        "middleint",
        "multilinestring",
        "multipoint",
        "multipolygon",
        "national",
        "nchar",
        "next",
        "nulls",
        "number",
        "period",
        "persistent",
        "point",
        "polygon",
        "quick",
        "raw",
        "srid",
        "stored",
        "unicode",
        "varchar2",
        "vector",
        "visible",
        "{",
    }
)
_NAMING = frozenset({"join", "into", "references", "from"})
_OPEN_ENDED = frozenset(",(")
_EMPTY = frozenset({(",", ","), (",", ")"), ("(", ",")})
Found = tuple[int, str]


def unknown(reader: Reader) -> str:
    """The message about a statement that is of no kind that blueprints may hold."""
    words = " ".join(reader.item(index).text for index in range(min(2, len(reader.tokens))))[:60]
    return f"`{words}` begins no statement that a blueprint for MySQL may hold"


def errors(reader: Reader, what: Description) -> Iterator[Found]:
    """What is surely wrong, in the order of the script for each check."""
    yield from _symbols(reader)
    yield from _lists(reader)
    yield from _names(reader, what)
    yield from _other_dialects(reader)
    if what.kind.endswith("TABLE") and what.kind.startswith("CREATE"):
        yield from tables.create_table_errors(reader)
    elif what.kind == "CREATE INDEX":
        yield from tables.create_index_errors(reader)
    elif what.kind == "ALTER TABLE":
        yield from tables.alter_table_errors(reader)
    elif what.object or not what.kind.startswith(_NEEDS_NAME):
        yield from forms.errors(reader, what)


def _symbols(reader: Reader) -> Iterator[Found]:
    for symbol in sorted(_MEANINGLESS & reader.vocabulary):
        yield reader.item(reader.words.index(symbol)).start, f"`{symbol}` means nothing to MySQL outside literals"
    for word in reader.vocabulary:
        if word.startswith("$$"):
            message = "dollar quoting is PostgreSQL's; write the body between BEGIN and END"
            yield reader.item(reader.words.index(word)).start, message
    if ":" in reader.vocabulary and (index := reader.find(":", ":")) is not None:
        yield reader.item(index).start, "`::` is PostgreSQL's; write CAST(… AS …)"


def _lists(reader: Reader) -> Iterator[Found]:
    opened: list[int] = []
    before = ""
    for index, word in enumerate(reader.words):
        if before in _OPEN_ENDED and (before, word) in _EMPTY:
            yield reader.item(index).start, f"there is nothing between `{before}` and `{word}`"
            return
        before = word
        if word == "(":
            opened.append(index)
            if len(opened) > MAX_PARENTHESES:
                yield reader.item(index).start, f"parentheses are nested more than {MAX_PARENTHESES} deep"
                return
        elif word == ")":
            if not opened:
                yield reader.item(index).start, "this `)` closes nothing"
                return
            opened.pop()
    if opened:
        yield reader.item(opened[-1]).start, "this `(` is never closed"
    elif before == ",":
        yield reader.item(-1).start, "nothing follows this `,`"


def _names(reader: Reader, what: Description) -> Iterator[Found]:
    if what.kind.startswith(_NEEDS_NAME) and not what.object:
        item = reader.here()
        hint = ": names stand in backticks, not in quotes" if item.kind is Kind.STRING else ""
        yield item.start, f"{what.kind} needs a name here{hint}"
    if what.kind in ("SHOW", "SET") or not _NAMING & reader.vocabulary:
        return
    depth = 0
    for index, word in enumerate(reader.words):
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif word in _NAMING and index + 1 < len(reader.tokens) and (word != "from" or depth == 0):
            after = reader.item(index + 1)
            if after.kind is Kind.STRING:
                yield after.start, f"a name is expected after {word}: names stand in backticks, not in quotes"
                return


def _other_dialects(reader: Reader) -> Iterator[Found]:
    for phrase, name in _POSTGRES_ONLY.items():
        if (index := reader.find(*phrase)) is not None:
            yield reader.item(index).start, f"{name} is PostgreSQL's"
    if reader.word_at(0) == "set" and reader.word_at(1) in _POSTGRES_SETTINGS:
        yield reader.item(1).start, f"{reader.word_at(1)} is a setting of PostgreSQL"


class SecondOpinion:
    """What sqlglot says of one script's statements."""

    def __init__(self) -> None:
        self._left = MAX_SCRIPT

    def error(self, script: str, statement: Statement, what: Description) -> Found | None:
        """Where a statement is wrong; None when it is well formed, or of a kind that sqlglot doesn't know well."""
        length = statement.end - statement.start
        if what.kind not in _KNOWN_WELL or length > min(MAX_STATEMENT, self._left):
            return None
        if _is_unknown_to_sqlglot(Reader(script, statement), what):
            return None
        self._left -= length
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


def _is_unknown_to_sqlglot(reader: Reader, what: Description) -> bool:
    """Whether it has what sqlglot would call wrong, and servers take."""
    words = reader.words
    if not _UNKNOWN_TO_SQLGLOT.isdisjoint(words):
        return True
    match what.kind:
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


def _without_marks(script: str, statement: Statement) -> str:
    """The statement with blanks for the marks of executable comments."""
    pieces = []
    at = statement.start
    for token in statement.tokens:
        if token.kind in (Kind.OPEN, Kind.CLOSE):
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
