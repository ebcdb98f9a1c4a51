"""How deep a script's trees can become at most, told from its tokens alone."""

from app.sql.errors import SqlError
from app.sql.postgres.lexer import Kind, tokens

MAX_DEPTH = 10_000
_SET_OPERATIONS = frozenset({"union", "except", "intersect"})


def check_depth(text: str) -> None:
    """Raises `SqlError` where more tokens than `MAX_DEPTH` could each be a level of one tree.

    Items of a list are side by side, so a comma begins anew. Terms of a chain (`1 + 1 + 1`, joins, unions) each
    enclose the one before.
    """
    here = unions = 0
    outside: list[tuple[int, int]] = []
    total = 0
    for token in tokens(text):
        if token.kind is Kind.COMMENT:
            continue
        symbol = text[token.start] if token.kind is Kind.SYMBOL else ""
        if symbol in "([" and symbol:
            outside.append((here, unions))
            total += here + unions + 1
            here = unions = 0
        elif symbol and symbol in ")]" and outside:
            here, unions = outside.pop()
            total -= here + unions + 1
            here += 1
        elif symbol == ";":
            here = unions = total = 0
            outside.clear()
        elif symbol == ",":
            here = 0
        else:
            here += 1
            if token.kind is Kind.WORD and text[token.start : token.end].lower() in _SET_OPERATIONS:
                unions += 1
        if total + here + unions > MAX_DEPTH:
            raise SqlError(token.start, f"the statement is nested or chained more than {MAX_DEPTH} deep here")
