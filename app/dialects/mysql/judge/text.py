"""A question's SQL as MySQL splits it: statements apart, comments gone. What is left is judged and executed, so that no
comment means one thing to a parser and another to the server."""

import re

from app.dialects.errors import SqlError
from app.dialects.mysql.lexer import tokens
from app.dialects.tokens import TokenKind
from app.dialects.verdict import Refused, Unreadable

# A quotation to MySQL 9; to a parser names, before which a quotation mark begins another.
_DOLLARS = re.compile(r"(?<![\w$])\$\w*\$")


def statements(sql: str) -> list[str]:
    """The statements, each without comments and without its semicolon; empty ones are left out. Raises `Refused` for
    comments that the server executes or obeys."""
    found: list[str] = []
    pieces: list[str] = []
    done = 0
    try:
        for kind, start, end in tokens(sql):
            if kind is TokenKind.COMMENT or kind is TokenKind.OPEN:
                _check_comment(sql[start:end])
                pieces += [sql[done:start], " "]
                done = end
            elif kind is TokenKind.WORD and _DOLLARS.search(sql[start:end]):
                raise Refused("Dollar signs may not quote.")
            elif kind is TokenKind.SYMBOL and sql[start] == ";":
                found.append("".join([*pieces, sql[done:start]]).strip())
                pieces, done = [], end
    except SqlError:
        raise Unreadable("A quotation or a comment has no end.") from None
    found.append("".join([*pieces, sql[done:]]).strip())
    return [statement for statement in found if statement]


def _check_comment(comment: str) -> None:
    if comment.startswith(("/*!", "/*M!")):
        raise Refused("The server would execute what stands in this comment.")
    if comment.startswith("/*+"):
        raise Refused("Optimizer hints are not allowed.")
