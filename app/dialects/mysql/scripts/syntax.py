"""Syntax errors of MySQL statements that are found without a server: from their tokens, and by sqlglot.

Neither knows the whole grammar of MySQL and MariaDB, so both report only what is certainly wrong. The server refuses
the rest, in a dry run or in the rehearsal before each application.
"""

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from app.dialects.analysis import Finding, StatementSummary
from app.dialects.mysql import parser
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.mysql.splitter import SplitStatement
from app.dialects.tokens import TokenKind
from app.dialects.word_lists import words

# What sqlglot reads in all is bounded, in characters: it takes about a second for 600 kB, and as long for a few
# thousand tiny statements. For an honest statement it takes fewer steps than the statement has characters.
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
"""Each is part of valid SQL that sqlglot doesn't know."""
_OPEN_ENDED = frozenset(",(")
_EMPTY = frozenset({(",", ","), (",", ")"), ("(", ",")})
_FOREIGN_TYPES = frozenset({exp.DType.HSTORE, exp.DType.JSONB, exp.DType.MONEY, exp.DType.TIMESTAMPTZ, exp.DType.XML})
# MySQL's TIMESTAMP is TIMESTAMPTZ to sqlglot, so the word counts too.
_FOREIGN_WORDS = re.compile(r"(?:hstore|jsonb|money|timestamptz|xml)\b", re.IGNORECASE)


def token_errors(reader: Reader) -> Iterator[Finding]:
    """Symbols that MySQL doesn't have outside literals, and lists and parentheses that can't be right."""
    for symbol in sorted(frozenset("[]\\") & reader.vocabulary):
        yield reader.item(reader.words.index(symbol)).start, f"`{symbol}` means nothing to MySQL outside literals"
    if any(map(_quotes_with_dollars, reader.vocabulary)):
        first = next(index for index, word in enumerate(reader.words) if _quotes_with_dollars(word))
        yield reader.item(first).start, "dollar quoting is PostgreSQL's; write the body between BEGIN and END"
    if ":" in reader.vocabulary and (index := reader.find(":", ":")) is not None:
        yield reader.item(index).start, "`::` is PostgreSQL's; write CAST(… AS …)"
    yield from _list_errors(reader)


def _quotes_with_dollars(word: str) -> bool:
    return word.startswith("$$")


def _list_errors(reader: Reader) -> Iterator[Finding]:
    unclosed: list[int] = []
    before = ""
    for index, word in enumerate(reader.words):
        if before in _OPEN_ENDED and (before, word) in _EMPTY:
            yield reader.item(index).start, f"there is nothing between `{before}` and `{word}`"
            return
        before = word
        if word == "(":
            unclosed.append(index)
        elif word == ")":
            if not unclosed:
                yield reader.item(index).start, "this `)` closes nothing"
                return
            unclosed.pop()
    if unclosed:
        yield reader.item(unclosed[-1]).start, "this `(` is never closed"
    elif before == ",":
        yield reader.item(-1).start, "nothing follows this `,`"


class Parser:
    """sqlglot, for the statements of one script."""

    def __init__(self) -> None:
        self._left = _MOST_OF_A_SCRIPT

    def error(self, script: str, statement: SplitStatement, what: StatementSummary) -> Finding | None:
        """Where a statement is wrong; None when it is well formed, or of a kind that sqlglot doesn't know well."""
        length = statement.end - statement.start
        if what.kind not in _KNOWN_WELL or length > min(_MOST_OF_A_STATEMENT, self._left):
            return None
        reader = Reader(script, statement)
        if _is_unknown_to_sqlglot(reader, what):
            return None
        text = _without_marks(script, statement)
        steps = parser.Steps()
        try:
            trees = parser.parse(text, ErrorLevel.IMMEDIATE, steps)
        except ParseError as error:
            found = error.errors[0] if error.errors else {}
            return _place(text, statement.start, found), _message(found)
        except (TokenError, parser.TooInvolved, parser.Stumbled):
            # Our own lexer has read it, and neither depth nor what sqlglot fails at is a fault.
            return None
        finally:
            self._left -= max(length, _LEAST_OF_A_STATEMENT, steps.taken)
        # A statement under another delimiter may hold semicolons, of which the server judges.
        return _other_dialect(reader, text, statement.start, trees[0]) if len(trees) == 1 and trees[0] else None


def _other_dialect(reader: Reader, text: str, start: int, tree: exp.Expr) -> Finding | None:
    """A fault for what sqlglot reads whatever the dialect, and neither MySQL nor MariaDB does: most scripts for
    PostgreSQL hold some of it."""
    for node in tree.walk():
        if isinstance(node, exp.OnConflict) and not node.args.get("duplicate"):
            return _at(reader, "conflict"), "ON CONFLICT is PostgreSQL's; MySQL has ON DUPLICATE KEY UPDATE"
        if isinstance(node, exp.ILike):
            return _at(reader, "ilike"), "ILIKE is PostgreSQL's; LIKE ignores case with most collations"
        # A computed column with two parentheses around its expression is the same to sqlglot.
        if isinstance(node, exp.GeneratedAsIdentityColumnConstraint) and reader.find("as", "identity") is not None:
            return _at(reader, "identity"), "AS IDENTITY is PostgreSQL's; MySQL has AUTO_INCREMENT"
        if isinstance(node, exp.ColumnDef) and isinstance(kind := node.kind, exp.DataType):
            after = text[node.this.meta.get("end", len(text)) + 1 :].lstrip()
            if kind.this in _FOREIGN_TYPES and (found := _FOREIGN_WORDS.match(after)):
                return start + len(text) - len(after), f"{found.group().upper()} is no type of MySQL"
    return None


def _at(reader: Reader, word: str) -> int:
    return reader.item(reader.words.index(word)).start if word in reader.words else reader.start


def _is_unknown_to_sqlglot(reader: Reader, what: StatementSummary) -> bool:
    """Whether the statement has what sqlglot would call wrong, and servers take."""
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
