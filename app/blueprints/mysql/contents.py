"""What is wrong inside MySQL statements of kinds that blueprints may hold."""

from collections.abc import Iterator

from app.blueprints.mysql import settings
from app.blueprints.mysql.kinds import Description
from app.blueprints.mysql.reader import Reader
from app.blueprints.mysql.refusals import DATABASES, FILES, SERVER
from app.sql.mysql.lexer import Kind

OUTSIDE_ENGINES = frozenset({"federated", "federatedx", "connect", "spider", "s3", "example", "ndb", "ndbcluster"})
_TABLES = frozenset({"CREATE TABLE", "CREATE TEMPORARY TABLE", "ALTER TABLE"})
Found = tuple[int, str]


def refusals(reader: Reader, what: Description) -> Iterator[Found]:
    """Each with its place."""
    if what.kind == "SET" and (reason := settings.refusal(reader)):
        yield reader.start, reason
    if what.object and "." in what.object and what.object_type != "index":
        database = what.object.split(".", maxsplit=1)[0]
        yield reader.start, DATABASES.format(kind=f"The name {what.object}") + f": write it without {database}"
    if what.kind in _TABLES:
        yield from _table_options(reader)
    if what.kind == "CREATE FUNCTION" and (index := reader.find("soname")) is not None:
        yield reader.items[index].start, SERVER.format(kind="CREATE FUNCTION … SONAME")
    yield from _files(reader)


def _files(reader: Reader) -> Iterator[Found]:
    for index, item in enumerate(reader.items):
        after = reader.items[index + 1].word if index + 1 < len(reader.items) else ""
        if item.word == "into" and after in ("outfile", "dumpfile"):
            yield item.start, FILES.format(kind=f"INTO {after.upper()}")
        elif after == "(" and item.is_name and item.name.lower() == "load_file":
            yield item.start, FILES.format(kind="LOAD_FILE")
        elif item.word == "load" and after in ("data", "xml"):
            yield item.start, FILES.format(kind=f"LOAD {after.upper()}")


def _table_options(reader: Reader) -> Iterator[Found]:
    items = reader.items
    for index in range(len(items) - 1):
        word, after = items[index].word, items[index + 1]
        if word in ("data", "index") and after.word == "directory":
            yield items[index].start, FILES.format(kind=f"{word.upper()} DIRECTORY")
        elif word in ("discard", "import") and after.word in ("tablespace", "partition"):
            yield items[index].start, FILES.format(kind=f"{word.upper()} TABLESPACE")
        elif word == "engine":
            value = items[index + 2] if after.word == "=" and index + 2 < len(items) else after
            name = value.text.strip("'\"`").lower() if value.kind is not Kind.SYMBOL else ""
            if name in OUTSIDE_ENGINES:
                yield items[index].start, f"the engine {name} keeps rows outside this database; use InnoDB"
