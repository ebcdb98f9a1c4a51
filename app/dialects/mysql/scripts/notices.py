"""Warnings about MySQL statements that destroy data, or keep it where it can be lost.

The rules have the names that squawk gives them where it has one, and Bytebase's otherwise.
"""

from collections.abc import Callable, Iterator

from app.dialects.analysis import Remark, StatementSummary
from app.dialects.mysql.scripts import contents, settings
from app.dialects.mysql.scripts.reader import Reader

_REPLACEMENT = "\ufffd"

Rule = Callable[[Reader, StatementSummary], Iterator[Remark]]


def notices(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    """What a statement destroys. The reader stands after the statement's name."""
    for rule in _RULES.get(what.kind, ()):
        yield from rule(reader, what)


def _drop_table(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    names = [what.object or ""]
    while reader.take(","):
        names.append(reader.take_name() or "")
    yield "ban-drop-table", f"DROP TABLE deletes {', '.join(names)} with all rows"


def _truncate(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    yield "ban-truncate", f"TRUNCATE deletes all rows of {what.object}"


def _without_where(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    if reader.find("where") is None and reader.find("limit") is None and reader.find("join") is None:
        does = "deletes" if what.kind == "DELETE" else "changes"
        yield "where-require", f"{what.kind} without WHERE {does} all rows of {what.object}"


def _engine(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    found = contents.engine(reader)
    if found is not None and found[1].lower() != "innodb":
        name = found[1]
        yield "use-innodb", f"{name} has no transactions, survives no crash, and hosts may not offer it; InnoDB does"


def _alter_table(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    table = what.object or ""
    depth = 0
    first = reader.at
    for index in range(first, len(reader.words)):
        word = reader.words[index]
        depth += (word == "(") - (word == ")")
        begins = depth == 0 and (index == first or reader.words[index - 1] == ",")
        if begins and word == "drop":
            yield from _drop(reader, index, table)


_DROPPED_PARTS = frozenset(
    {"primary", "foreign", "constraint", "check", "index", "key", "partition", "default", "system", "period"}
)


def _drop(reader: Reader, index: int, table: str) -> Iterator[Remark]:
    part = reader.word_at(index + 1)
    if part == "partition":
        yield "ban-drop-partition", f"DROP PARTITION deletes its rows of {table}"
    elif part not in _DROPPED_PARTS:
        reader.at = index + 1 + (part == "column")
        if reader.take("if"):
            reader.take("exists")
        yield "ban-drop-column", f"DROP COLUMN deletes {table}.{reader.take_name()} in all rows"


def _set(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    if message := settings.surprise(reader):
        yield "character-set", message


def _replacements(reader: Reader, what: StatementSummary) -> Iterator[Remark]:
    if _REPLACEMENT in reader.text:
        yield (
            "replacement-character",
            f"rows of {what.object} hold U+FFFD, which stands where a dump's octets were no text: if they were binary,"
            " make the dump with --hex-blob, or send it in base64",
        )


_RULES: dict[str, tuple[Rule, ...]] = {
    "DROP TABLE": (_drop_table,),
    "TRUNCATE": (_truncate,),
    "DELETE": (_without_where,),
    "UPDATE": (_without_where,),
    "CREATE TABLE": (_engine,),
    "CREATE TEMPORARY TABLE": (_engine,),
    "ALTER TABLE": (_engine, _alter_table),
    "INSERT": (_replacements,),
    "REPLACE": (_replacements,),
    "SET": (_set,),
}
