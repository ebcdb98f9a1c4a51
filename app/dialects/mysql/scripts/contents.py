"""What is wrong inside MySQL statements of kinds that blueprints may hold."""

from collections.abc import Iterator

from app.dialects.analysis import Finding, StatementSummary
from app.dialects.mysql.scripts import settings
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.mysql.scripts.refusals import FILES, LOST_OCTETS, SERVER
from app.dialects.tokens import TokenKind

OUTSIDE_ENGINES = frozenset({"federated", "federatedx", "connect", "spider", "s3", "example", "ndb", "ndbcluster"})
_TABLES = frozenset({"CREATE TABLE", "CREATE TEMPORARY TABLE", "ALTER TABLE"})
_NEEDS_NAME = ("INSERT", "REPLACE", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "CALL")
_FILE_PHRASES = (("into", "outfile"), ("into", "dumpfile"), ("load_file", "("), ("load", "data"), ("load", "xml"))
_TABLE_PHRASES = (
    ("data", "directory"),
    ("index", "directory"),
    ("discard", "tablespace"),
    ("import", "tablespace"),
    ("discard", "partition"),
    ("import", "partition"),
)


def refusals(reader: Reader, what: StatementSummary) -> Iterator[Finding]:
    """Why no blueprint may hold the statement, each reason with its place."""
    if what.kind == "SET" and (reason := settings.refusal(reader)):
        yield reader.start, reason
    if what.kind in _TABLES:
        yield from _table_options(reader)
    if what.kind == "CREATE FUNCTION" and (index := reader.find("soname")) is not None:
        yield reader.item(index).start, SERVER.format(kind="CREATE FUNCTION … SONAME")
    yield from _files(reader)
    if (index := reader.find("release_all_locks", "(")) is not None:
        # By a lock of its session's a script that is being applied is known to be at work, and not to be begun again.
        yield reader.item(index).start, "RELEASE_ALL_LOCKS would end locks that are not yours; name those you hold"


def wrong_names(reader: Reader, what: StatementSummary) -> Iterator[Finding]:
    """Faults for a name with a database's before it, and where a name is needed but none can be read; the reader has
    just taken the name. What is a database to MySQL may be a schema elsewhere."""
    if what.object is None and what.kind.startswith(_NEEDS_NAME):
        item = reader.here()
        hint = ": names stand in backticks, not in quotes" if item.kind is TokenKind.STRING else ""
        yield item.start, f"{what.kind} needs a name here{hint}"
    if what.object and reader.database is not None:
        message = (
            f"{what.object} names a database; a blueprint is applied inside one, so leave out `{reader.database}.`"
        )
        yield reader.start, message


def lost_octets(reader: Reader) -> Iterator[Finding]:
    """Faults for binary strings of a dump that was read as UTF-8: octets that aren't UTF-8 are U+FFFD now, for good."""
    if "_binary" not in reader.vocabulary:
        return
    for at, word in enumerate(reader.words[:-1]):
        if word == "_binary" and reader.item(at + 1).kind is TokenKind.STRING:
            string = reader.item(at + 1)
            if "\ufffd" in string.text:
                yield string.start, LOST_OCTETS


def _files(reader: Reader) -> Iterator[Finding]:
    for words in _FILE_PHRASES:
        if (index := reader.find(*words)) is not None:
            yield reader.item(index).start, FILES.format(kind=" ".join(words).removesuffix(" (").upper())


def _table_options(reader: Reader) -> Iterator[Finding]:
    for words in _TABLE_PHRASES:
        if (index := reader.find(*words)) is not None:
            yield reader.item(index).start, FILES.format(kind=" ".join(words).upper())
    if (found := engine(reader)) is not None and found[1].lower() in OUTSIDE_ENGINES:
        yield found[0], f"the engine {found[1]} keeps rows outside this database; use InnoDB"


def engine(reader: Reader) -> Finding | None:
    """The storage engine that a table is given, and where."""
    for index, word in enumerate(reader.words):
        if word == "engine":
            value = reader.item(min(index + 1 + (reader.word_at(index + 1) == "="), len(reader.tokens) - 1))
            if value.kind is not TokenKind.SYMBOL and value.text.lower() != "engine":
                return reader.item(index).start, value.text.strip("'\"`")
    return None
