"""DEFINER = user: the owner of a view or routine, which a dump carries over from another server."""

from app.dialects.analysis import Cut
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.tokens import TokenKind

_HEADER = 12
_WHO = (TokenKind.WORD, TokenKind.QUOTED_NAME, TokenKind.STRING)


def skip_definer(reader: Reader) -> Cut | None:
    """Steps over a DEFINER clause if one comes next. Returns what to cut; None without a clause, and where the definer
    is the user who runs the statement."""
    if not reader.take("definer", "="):
        return None
    start = reader.item(reader.at - 2).start
    if reader.word() in ("current_user", "current_role"):
        reader.at += 1
        reader.take("(", ")")
        return None
    _take_part(reader)
    if reader.take("@"):
        _take_part(reader)
        while reader.take("."):
            _take_part(reader)
    return Cut(start, reader.item(reader.at - 1).end)


def find_definer(reader: Reader) -> Cut | None:
    """What to cut for the clause among the first words of a CREATE or ALTER."""
    index = reader.find("definer", "=")
    if index is None or index > _HEADER:
        return None
    before, reader.at = reader.at, index
    cut = skip_definer(reader)
    reader.at = before
    return cut


def _take_part(reader: Reader) -> None:
    item = reader.peek()
    if item is not None and item.kind in _WHO:
        reader.at += 1
