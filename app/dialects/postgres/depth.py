"""An upper bound of the depth of a script's syntax trees, from its tokens alone."""

from app.dialects.errors import TooDeep, TooManyStatements
from app.dialects.postgres.lexer import tokens
from app.dialects.tokens import TokenKind

MAX_DEPTH = 10_000
_OPENING = frozenset("([")
_CLOSING = frozenset(")]")
_SET_OPERATIONS = frozenset({"union", "except", "intersect"})


def check_depth(text: str, most: int | None = None) -> None:
    """Raises `TooDeep` where more tokens than `MAX_DEPTH` could each be a level of one tree, and `TooManyStatements`
    where another statement begins after `most`; an empty one before a semicolon counts too.

    Items of a list are side by side, so a comma begins anew. Terms of a chain (`1 + 1 + 1`, joins, unions) each
    enclose the one before.
    """
    here = total = 0
    outside: list[int] = []
    unions: list[int] = [0]
    statements = 0
    for kind, start, end in tokens(text):
        if statements == most and kind is not TokenKind.COMMENT:
            raise TooManyStatements(start, statements)
        symbol = text[start] if kind is TokenKind.SYMBOL else ""
        if symbol == ",":
            here = 0
        elif symbol in _OPENING:
            outside.append(here)
            unions.append(0)
            total += here + 1
            here = 0
        elif symbol in _CLOSING and outside:
            here = outside.pop()
            total -= here + unions.pop() + 1
            here += 1
        elif symbol == ";":
            statements += 1
            here = total = 0
            outside.clear()
            unions = [0]
        elif kind is not TokenKind.COMMENT:
            here += 1
            if kind is TokenKind.WORD and text[start:end].lower() in _SET_OPERATIONS:
                unions[-1] += 1
                total += 1
            if total + here > MAX_DEPTH:
                raise TooDeep(start, f"the statement is nested or chained more than {MAX_DEPTH} deep here")
