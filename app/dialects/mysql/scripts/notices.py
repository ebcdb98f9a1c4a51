"""Warnings about MySQL statements that destroy, block or surprise.

The rules have the names that squawk gives them where it has one, and Bytebase's otherwise. A table that the script
makes itself is empty and nobody waits for it, so the rules about blocking and about rows leave it alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from app.dialects.analysis import Analysis, Remark, StatementSummary
from app.dialects.mysql.scripts import contents, settings
from app.dialects.mysql.scripts.reader import Reader

MAX_NAME = 64
Rule = Callable[[Reader, StatementSummary, set[str]], Iterator[Remark]]


@dataclass(slots=True)
class MySQLNotices:
    """Sees the statements of a script in their order."""

    analysis: Analysis
    _made: set[str] = field(default_factory=set)

    def see(self, reader: Reader, what: StatementSummary, offset: int) -> None:
        for rule in _RULES.get(what.kind, ()):
            for name, message in rule(reader, what, self._made):
                self.analysis.notice(name, offset, message)
        if reader.find("-", ">") is not None:
            self.analysis.notice(
                "mysql-only", offset, "-> is MySQL's, and MariaDB refuses it; JSON_EXTRACT serves both"
            )
        if what.kind == "SELECT" and any(reader.find("fetch", word) is not None for word in ("first", "next")):
            self.analysis.notice("mariadb-only", offset, "FETCH FIRST is MariaDB's; LIMIT serves both")
        if what.makes and what.object:
            if what.object_type == "table":
                self._made.add(what.object)
            if any(len(part) > MAX_NAME for part in what.object.split(".")):
                self.analysis.notice("identifier-too-long", offset, f"{what.object} is longer than 64 characters")


def _drop_table(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    yield "ban-drop-table", f"DROP TABLE deletes {', '.join(_names(reader, what))} with all rows"


def _truncate(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    yield "ban-truncate", f"TRUNCATE deletes all rows of {what.object}"


def _without_where(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    if reader.find("where") is None and reader.find("limit") is None and reader.find("join") is None:
        does = "deletes" if what.kind == "DELETE" else "changes"
        yield "where-require", f"{what.kind} without WHERE {does} all rows of {what.object}"


def _create_index(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    on = reader.find("on")
    if on is None:
        return
    reader.at = on + 1
    table = reader.take_name()
    if table and table not in made:
        yield "require-concurrent-index-creation", f"CREATE INDEX may block writes to {table} while it is built"
        if reader.find("unique") is not None:
            yield "unique-index-on-rows", f"CREATE UNIQUE INDEX fails if {table} holds duplicates"


def _rename(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    if what.object not in made:
        yield "renaming-table", f"renaming {what.object} breaks whoever still uses the old name"


def _engine(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    found = contents.engine(reader)
    if found is not None and found[1].lower() != "innodb":
        name = found[1]
        yield "use-innodb", f"{name} has no transactions, survives no crash, and hosts may not offer it; InnoDB does"


def _alter_table(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    table = what.object or ""
    depth = 0
    first = reader.at
    for index in range(first, len(reader.words)):
        word = reader.words[index]
        depth += (word == "(") - (word == ")")
        if depth == 0 and (index == first or reader.words[index - 1] == ","):
            yield from _change(reader, index, table, table in made)


def _change(reader: Reader, index: int, table: str, is_new: bool) -> Iterator[Remark]:
    words = [*reader.words[index : index + 3], "", ""]
    if words[0] == "drop" and words[1] not in _DROPPED_PARTS:
        reader.at = index + 1 + (words[1] == "column")
        if reader.take("if"):
            reader.take("exists")
        yield "ban-drop-column", f"DROP COLUMN deletes {table}.{reader.take_name()} in all rows"
    if is_new:
        return
    match words[0], words[1]:
        case "drop", "primary" | "foreign" | "constraint" | "check":
            yield "ban-drop-constraint", f"nothing enforces the dropped rule on {table} any more"
        case "drop", "partition":
            yield "ban-drop-partition", f"DROP PARTITION deletes its rows of {table}"
        case "modify", _:
            yield "changing-column-type", f"{table} may be copied, and writes blocked meanwhile, to change a column"
        case "change", _:
            yield "renaming-column", f"CHANGE may rename a column of {table}, and may copy the table"
        case "rename", "column":
            yield "renaming-column", f"renaming a column of {table} breaks whoever still uses the old name"
        case "rename", "to" | "as" | "":
            yield "renaming-table", f"renaming {table} breaks whoever still uses the old name"
        case "rename", other if other not in ("index", "key"):
            yield "renaming-table", f"renaming {table} breaks whoever still uses the old name"
        case "convert", "to":
            yield "changing-column-type", f"CONVERT TO copies {table}, and writes are blocked meanwhile"
        case "add", "unique" | "primary":
            yield "disallowed-unique-constraint", f"an index on {table} is built, and fails on duplicates"
        case "add", "foreign":
            yield "adding-foreign-key-constraint", f"all rows of {table} are checked while writes wait"
        case "add", "constraint" if "foreign" in reader.words[index : index + 4]:
            yield "adding-foreign-key-constraint", f"all rows of {table} are checked while writes wait"


_DROPPED_PARTS = frozenset(
    {"primary", "foreign", "constraint", "check", "index", "key", "partition", "default", "system", "period"}
)


def _set(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    if message := settings.surprise(reader):
        yield "character-set", message


def _sequence(reader: Reader, what: StatementSummary, made: set[str]) -> Iterator[Remark]:
    yield "mariadb-only", "sequences are MariaDB's, and fail on MySQL"


def _names(reader: Reader, what: StatementSummary) -> list[str]:
    names = [what.object or ""]
    while reader.take(","):
        names.append(reader.take_name() or "")
    return names


_RULES: dict[str, tuple[Rule, ...]] = {
    "DROP TABLE": (_drop_table,),
    "TRUNCATE": (_truncate,),
    "DELETE": (_without_where,),
    "UPDATE": (_without_where,),
    "CREATE INDEX": (_create_index,),
    "RENAME TABLE": (_rename,),
    "CREATE TABLE": (_engine,),
    "CREATE TEMPORARY TABLE": (_engine,),
    "ALTER TABLE": (_engine, _alter_table),
    "SET": (_set,),
    "CREATE SEQUENCE": (_sequence,),
}
