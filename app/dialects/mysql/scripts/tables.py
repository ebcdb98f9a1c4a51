"""The form of CREATE TABLE, CREATE INDEX and ALTER TABLE on MySQL, as far as other dialects or slips would differ."""

from collections.abc import Iterator

from app.dialects.analysis import Finding
from app.dialects.mysql.scripts.reader import Lexeme, Reader
from app.dialects.mysql.scripts.words import (
    AFTER_COLUMNS,
    AFTER_INDEX,
    ATTRIBUTES,
    CHANGES,
    CONSTRAINTS,
    INDEX_TYPES,
    RESERVED,
    TYPES,
)
from app.dialects.tokens import TokenKind

_NEEDS_MORE = frozenset({"add", "drop", "modify", "change", "rename", "alter"})
_NEEDS_LENGTH = frozenset({"varchar", "varbinary", "varcharacter", "nvarchar", "varchar2"})
_ADDED = CONSTRAINTS | {"partition", "system"}
_RETYPES = (["set", "data"], ["set", "not"], ["drop", "not"])
_LOOKED_AT = 4


def create_table_errors(reader: Reader) -> Iterator[Finding]:
    """The reader stands after the table's name."""
    first = reader.peek()
    if first is None:
        yield reader.item(-1).start, "the table's columns are missing"
        return
    if first.word in ("like", "as", "select") or (first.word == "(" and reader.word(1) in ("like", "select", "with")):
        return
    if first.word != "(":
        if first.word not in AFTER_COLUMNS or (first.word == "partition" and reader.word(1) == "of"):
            yield first.start, f"\"{first.text}\" can't follow the table's name; its columns stand in parentheses"
        return
    parts, rest = _parts(reader)
    for part in parts:
        yield from _column(part)
    if not parts:
        yield first.start, "the table has no columns"
    after = [item.word for item in rest]
    if rest and (
        rest[0].word not in AFTER_COLUMNS or (after[0] == "with" and after[1:] not in (["system"], ["parser"]))
    ):
        yield rest[0].start, f'"{rest[0].text}" is no option of a table'


def create_index_errors(reader: Reader) -> Iterator[Finding]:
    """The reader stands after the index's name."""
    if reader.take("using") or reader.take("type"):
        if reader.word() not in INDEX_TYPES:
            yield reader.item(reader.at - 1).start, "MySQL has indexes of the kinds BTREE, HASH and RTREE"
            return
        reader.at += 1
    item = reader.here()
    if not reader.take("on"):
        yield item.start, "CREATE INDEX name ON table (columns) is expected"
        return
    if reader.take_name() is None or reader.word() != "(":
        yield reader.here().start, "a table's name and its columns in parentheses are expected"
        return
    _, rest = _parts(reader)
    if rest and rest[0].word not in AFTER_INDEX:
        yield rest[0].start, f'"{rest[0].text}" is no option of an index'


def alter_table_errors(reader: Reader) -> Iterator[Finding]:
    """The reader stands after the table's name."""
    item = reader.peek()
    if item is None:
        yield reader.item(-1).start, "ALTER TABLE says nothing to change"
        return
    if item.is_name and reader.word_at(reader.at - 1) == "only":
        yield reader.item(reader.at - 1).start, "ALTER TABLE ONLY is PostgreSQL's"
        return
    start = True
    depth = 0
    for index in range(reader.at, len(reader.words)):
        if start:
            reader.at = index
            yield from _change(reader)
        word = reader.words[index]
        depth += (word == "(") - (word == ")")
        start = word == "," and depth == 0


def _change(reader: Reader) -> Iterator[Finding]:
    first = reader.here()
    if first.word not in CHANGES:
        if first.word not in AFTER_COLUMNS:
            yield first.start, f'"{first.text}" is no change of a table'
        return
    words = reader.words[reader.at + 1 : reader.at + 5]
    if first.word == "alter" and words[:1] == ["column"] and (words[2:3] == ["type"] or words[2:] in _RETYPES):
        yield first.start, "MySQL changes a column's type with MODIFY COLUMN"
    elif first.word in _NEEDS_MORE and (not words or words[0] == ","):
        yield first.start, f"{first.text} says nothing to {first.text.lower()}"
    elif first.word == "add" and words[0] not in _ADDED:
        yield from _added_column(reader)


def _added_column(reader: Reader) -> Iterator[Finding]:
    reader.at += 1
    reader.take("column")
    if reader.take("if"):
        reader.take("not")
        reader.take("exists")
    items: list[Lexeme] = []
    while (item := reader.peek()) is not None and item.word != "," and len(items) < _LOOKED_AT:
        if item.word == "(" and not items:  # several columns
            break
        items.append(item)
        reader.at += 1
    if items:
        yield from _column(items)
    elif item is None or item.word != "(":
        yield reader.item(-1).start, "a column's name and type are expected"


def _column(part: list[Lexeme]) -> Iterator[Finding]:
    first = part[0]
    if first.kind is TokenKind.WORD and first.word in CONSTRAINTS and not _is_column_name(part):
        yield from _constraint(part)
    elif first.kind is TokenKind.STRING:
        yield first.start, "a column's name stands in backticks, not in quotes"
    elif not first.is_name:
        yield first.start, f'a column\'s name is expected, not "{first.text}"'
    elif first.word in RESERVED:
        yield first.start, f"{first.text} is a reserved word; as a name it stands in backticks"
    elif len(part) == 1:
        yield first.start, f"the column {first.name} has no type"
    elif part[1].kind is not TokenKind.WORD or part[1].word not in TYPES:
        yield part[1].start, f'"{part[1].text}" is no type of MySQL'
    else:
        yield from _attributes(part)


def _attributes(part: list[Lexeme]) -> Iterator[Finding]:
    index = 2
    if len(part) > 2 and part[2].word == "(":
        while index < len(part) and part[index].word != ")":
            index += 1
        index += 1
    elif part[1].word in _NEEDS_LENGTH and (len(part) == 2 or part[2].word not in ("char", "character")):
        yield part[1].start, f"{part[1].text} needs a length in parentheses"
        return
    if index < len(part) and part[index].word not in ATTRIBUTES:
        yield part[index].start, f"\"{part[index].text}\" can't follow a column's type"


def _constraint(part: list[Lexeme]) -> Iterator[Finding]:
    words = [item.word for item in part]
    for word in ("foreign", "primary"):
        if word in words and words[words.index(word) + 1 : words.index(word) + 2] != ["key"]:
            yield part[words.index(word)].start, f"{word.upper()} KEY is expected"
            return


def _is_column_name(part: list[Lexeme]) -> bool:
    """Some of the words are no keywords for MySQL: `period INT`, `type TEXT`."""
    return part[0].word == "period" and len(part) > 1 and part[1].word in TYPES


def _parts(reader: Reader) -> tuple[list[list[Lexeme]], list[Lexeme]]:
    """What stands between the commas of the parentheses that begin here, and the two items that follow them."""
    parts: list[list[Lexeme]] = [[]]
    depth = 0
    for index in range(reader.at, len(reader.words)):
        word = reader.words[index]
        if word == ")" and depth == 1:
            rest = [reader.item(after) for after in range(index + 1, min(index + 3, len(reader.words)))]
            return [part for part in parts if part], rest
        if depth and not (word == "," and depth == 1):
            parts[-1].append(reader.item(index))
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 1:
            parts.append([])
    return [part for part in parts if part], []
