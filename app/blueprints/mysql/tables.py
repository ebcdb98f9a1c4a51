"""The form of CREATE TABLE, CREATE INDEX and ALTER TABLE on MySQL, as far as other dialects or slips would differ."""

from collections.abc import Iterator

from app.blueprints.mysql.reader import Item, Reader
from app.blueprints.mysql.words import AFTER_COLUMNS, AFTER_INDEX, CONSTRAINTS, INDEX_TYPES, TYPES
from app.sql.mysql.lexer import Kind

Found = tuple[int, str]


def create_table_errors(reader: Reader) -> Iterator[Found]:
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
    if rest and rest[0].word not in AFTER_COLUMNS:
        yield rest[0].start, f'"{rest[0].text}" is no option of a table'


def create_index_errors(reader: Reader) -> Iterator[Found]:
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


def alter_table_errors(reader: Reader) -> Iterator[Found]:
    """The reader stands after the table's name."""
    item = reader.peek()
    if item is None:
        yield reader.item(-1).start, "ALTER TABLE says nothing to change"
        return
    if item.is_name and reader.word_at(reader.at - 1) == "only":
        yield reader.item(reader.at - 1).start, "ALTER TABLE ONLY is PostgreSQL's"
        return
    for index in range(reader.at, len(reader.words) - 3):
        if reader.words[index : index + 2] == ["alter", "column"]:
            change = reader.words[index + 3 : index + 5]
            if change[:1] == ["type"] or change in (["set", "data"], ["set", "not"]):
                yield reader.item(index).start, "MySQL changes a column's type with MODIFY COLUMN"
                return


def _column(part: list[Item]) -> Iterator[Found]:
    first = part[0]
    if first.kind is Kind.WORD and first.word in CONSTRAINTS and not _is_column_name(part):
        return
    if first.kind is Kind.STRING:
        yield first.start, "a column's name stands in backticks, not in quotes"
    elif not first.is_name:
        yield first.start, f'a column\'s name is expected, not "{first.text}"'
    elif len(part) == 1:
        yield first.start, f"the column {first.name} has no type"
    elif part[1].kind is not Kind.WORD or part[1].word not in TYPES:
        yield part[1].start, f'"{part[1].text}" is no type of MySQL'


def _is_column_name(part: list[Item]) -> bool:
    """Some of the words are no keywords for MySQL: `period INT`, `type TEXT`."""
    return part[0].word == "period" and len(part) > 1 and part[1].word in TYPES


def _parts(reader: Reader) -> tuple[list[list[Item]], list[Item]]:
    """What stands between the commas of the parentheses that begin here, and the item that follows them."""
    parts: list[list[Item]] = [[]]
    depth = 0
    for index in range(reader.at, len(reader.words)):
        word = reader.words[index]
        if word == ")" and depth == 1:
            rest = [reader.item(index + 1)] if index + 1 < len(reader.words) else []
            return [part for part in parts if part], rest
        if depth and not (word == "," and depth == 1):
            parts[-1].append(reader.item(index))
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 1:
            parts.append([])
    return [part for part in parts if part], []
