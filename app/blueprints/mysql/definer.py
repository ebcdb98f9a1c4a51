"""DEFINER = user: the owner of a view or routine, which a dump carries over from another server."""

from app.blueprints.analysis import Cut
from app.blueprints.mysql.reader import Reader
from app.sql.mysql.lexer import Kind

_WHO = (Kind.WORD, Kind.QUOTED_NAME, Kind.STRING)


def skip_definer(reader: Reader) -> Cut | None:
    """Steps over a clause that comes next. What to cut; None where it is the one who runs the statement."""
    if not reader.take("definer", "="):
        return None
    start = reader.items[reader.at - 2].start
    if reader.word() in ("current_user", "current_role"):
        reader.at += 1
        reader.take("(", ")")
        return None
    _take_part(reader)
    if reader.take("@"):
        _take_part(reader)
        while reader.take("."):
            _take_part(reader)
    return Cut(start, reader.items[reader.at - 1].end)


def find_definer(reader: Reader) -> Cut | None:
    """The clause among the first words of a CREATE or ALTER."""
    for index in range(1, min(len(reader.items), 12)):
        if reader.items[index].word == "definer" and index + 1 < len(reader.items):
            if reader.items[index + 1].word != "=":
                return None
            before, reader.at = reader.at, index
            cut = skip_definer(reader)
            reader.at = before
            return cut
    return None


def _take_part(reader: Reader) -> None:
    item = reader.peek()
    if item is not None and item.kind in _WHO:
        reader.at += 1
