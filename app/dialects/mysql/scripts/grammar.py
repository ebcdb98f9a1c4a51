"""What is surely wrong with the form of MySQL statements, as far as that can be told without a server."""

from collections.abc import Iterator

from app.dialects.analysis import Finding, StatementSummary
from app.dialects.mysql.scripts import forms, tables
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.tokens import TokenKind

_MOST_PARENTHESES = 500
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
_NAMING = frozenset({"join", "into", "references", "from"})
_OPEN_ENDED = frozenset(",(")
_EMPTY = frozenset({(",", ","), (",", ")"), ("(", ",")})


def unknown(reader: Reader) -> str:
    """The message about a statement that is of no kind that blueprints may hold."""
    words = " ".join(reader.item(index).text for index in range(min(2, len(reader.tokens))))[:60]
    return f"`{words}` begins no statement that a blueprint for MySQL may hold"


def errors(reader: Reader, what: StatementSummary) -> Iterator[Finding]:
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


def _symbols(reader: Reader) -> Iterator[Finding]:
    for symbol in sorted(_MEANINGLESS & reader.vocabulary):
        yield reader.item(reader.words.index(symbol)).start, f"`{symbol}` means nothing to MySQL outside literals"
    for word in reader.vocabulary:
        if word.startswith("$$"):
            message = "dollar quoting is PostgreSQL's; write the body between BEGIN and END"
            yield reader.item(reader.words.index(word)).start, message
    if ":" in reader.vocabulary and (index := reader.find(":", ":")) is not None:
        yield reader.item(index).start, "`::` is PostgreSQL's; write CAST(… AS …)"


def _lists(reader: Reader) -> Iterator[Finding]:
    opened: list[int] = []
    before = ""
    for index, word in enumerate(reader.words):
        if before in _OPEN_ENDED and (before, word) in _EMPTY:
            yield reader.item(index).start, f"there is nothing between `{before}` and `{word}`"
            return
        before = word
        if word == "(":
            opened.append(index)
            if len(opened) > _MOST_PARENTHESES:
                yield reader.item(index).start, f"parentheses are nested more than {_MOST_PARENTHESES} deep"
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


def _names(reader: Reader, what: StatementSummary) -> Iterator[Finding]:
    if what.kind.startswith(_NEEDS_NAME) and not what.object:
        item = reader.here()
        hint = ": names stand in backticks, not in quotes" if item.kind is TokenKind.STRING else ""
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
            if after.kind is TokenKind.STRING:
                yield after.start, f"a name is expected after {word}: names stand in backticks, not in quotes"
                return


def _other_dialects(reader: Reader) -> Iterator[Finding]:
    for phrase, name in _POSTGRES_ONLY.items():
        if (index := reader.find(*phrase)) is not None:
            yield reader.item(index).start, f"{name} is PostgreSQL's"
    if reader.word_at(0) == "set" and reader.word_at(1) in _POSTGRES_SETTINGS:
        yield reader.item(1).start, f"{reader.word_at(1)} is a setting of PostgreSQL"
