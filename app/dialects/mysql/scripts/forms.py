"""The forms of MySQL statements beside those of tables: which part has to follow which."""

from collections.abc import Callable, Iterator

from app.dialects.analysis import Finding, StatementSummary
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.tokens import TokenKind

_QUERIES = frozenset({"select", "with", "values", "table", "("})
_ROWS = frozenset({"values", "value"})
_NO_EQUALS = frozenset({"names", "character", "charset", "transaction", "password", "role", "default", "statement"})
_AFTER_DROPPED = frozenset({"restrict", "cascade", "wait", "nowait", ","})


def errors(reader: Reader, what: StatementSummary) -> Iterator[Finding]:
    """The reader stands after the statement's name."""
    if check := _FORMS.get(what.kind):
        yield from check(reader)


def _expected(reader: Reader, what: str) -> Finding:
    here = reader.peek()
    if here is None:
        return reader.item(-1).end, f"{what} is expected at the end"
    return here.start, f'{what} is expected, not "{here.text[:60]}"'


def _insert(reader: Reader) -> Iterator[Finding]:
    if reader.take("partition"):
        _skip_parentheses(reader)
    if reader.word() == "(" and reader.word(1) not in _QUERIES:
        _skip_parentheses(reader)
    if reader.take("set"):
        yield from _assigns(reader)
    elif reader.take_any(_ROWS):
        yield from _rows(reader)
    elif reader.word() not in _QUERIES:
        yield _expected(reader, "VALUES, SET or SELECT")


def _rows(reader: Reader) -> Iterator[Finding]:
    while True:
        reader.take("row")
        if reader.word() != "(":
            yield _expected(reader, "a row in parentheses")
            return
        _skip_parentheses(reader)
        if not reader.take(","):
            break
    if reader.peek() is not None and reader.word() not in ("as", "on", "returning", "union", "order", "limit"):
        yield _expected(reader, "a comma or the end")


def _assigns(reader: Reader) -> Iterator[Finding]:
    if reader.take_name() is None or reader.word() not in ("=", ".", ":"):
        yield _expected(reader, "column = value")


def _update(reader: Reader) -> Iterator[Finding]:
    index = reader.find("set")
    if index is None:
        yield _expected(reader, "SET")
        return
    reader.at = index + 1
    yield from _assigns(reader)


def _set(reader: Reader) -> Iterator[Finding]:
    if not set(reader.words) & (_NO_EQUALS | {"="}):
        yield _expected(reader, "variable = value")


def _drop(reader: Reader) -> Iterator[Finding]:
    while reader.take(","):
        if reader.take_name() is None:
            yield _expected(reader, "a name")
            return
    if reader.peek() is not None and reader.word() not in _AFTER_DROPPED:
        yield _expected(reader, "the end")


def _drop_index(reader: Reader) -> Iterator[Finding]:
    if not reader.take("on") or reader.take_name() is None:
        yield _expected(reader, "ON and a table's name")


def _truncate(reader: Reader) -> Iterator[Finding]:
    if reader.peek() is not None and reader.word() not in ("wait", "nowait"):
        yield _expected(reader, "the end")


def _rename(reader: Reader) -> Iterator[Finding]:
    reader.take("wait")
    if not reader.take("to") or reader.take_name() is None:
        yield _expected(reader, "TO and the new name")


def _view(reader: Reader) -> Iterator[Finding]:
    if reader.word() == "(":
        _skip_parentheses(reader)
    if not reader.take("as") or reader.word() not in _QUERIES:
        yield _expected(reader, "AS and a SELECT")


def _routine(reader: Reader) -> Iterator[Finding]:
    if reader.word() != "(":
        yield _expected(reader, "( with the parameters")


def _trigger(reader: Reader) -> Iterator[Finding]:
    if reader.word() not in ("before", "after"):
        yield _expected(reader, "BEFORE or AFTER")
    elif reader.find("for", "each", "row") is None:
        yield reader.start, "FOR EACH ROW is missing"


def _select(reader: Reader) -> Iterator[Finding]:
    index = reader.find("ilike")
    if index is not None and index + 1 < len(reader.tokens) and reader.tokens[index + 1].kind is TokenKind.STRING:
        yield reader.item(index).start, "ILIKE is PostgreSQL's; LIKE ignores case with most collations"


def _skip_parentheses(reader: Reader) -> None:
    depth = 0
    for index in range(reader.at, len(reader.words)):
        word = reader.words[index]
        depth += (word == "(") - (word == ")")
        if depth == 0:
            reader.at = index + 1
            return
    reader.at = len(reader.words)


_FORMS: dict[str, Callable[[Reader], Iterator[Finding]]] = {
    "INSERT": _insert,
    "REPLACE": _insert,
    "UPDATE": _update,
    "SET": _set,
    "DROP TABLE": _drop,
    "DROP VIEW": _drop,
    "DROP INDEX": _drop_index,
    "TRUNCATE": _truncate,
    "RENAME TABLE": _rename,
    "CREATE VIEW": _view,
    "CREATE PROCEDURE": _routine,
    "CREATE FUNCTION": _routine,
    "CREATE TRIGGER": _trigger,
    "SELECT": _select,
}
