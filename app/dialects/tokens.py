"""The tokens of SQL, the same for every dialect."""

from enum import Enum
from typing import NamedTuple


class TokenKind(Enum):
    WORD = "word"
    QUOTED_NAME = "quoted name"
    STRING = "string"
    DOLLAR = "dollar-quoted string"
    COMMENT = "comment"
    SYMBOL = "symbol"
    NUMBER = "number"
    OPEN = "start of an executable comment"
    CLOSE = "end of an executable comment"
    DELIMITER = "delimiter"


class Token(NamedTuple):
    """`start` and `end` count characters of the text, from 0; `end` is the first one after the token."""

    kind: TokenKind
    start: int
    end: int

    @property
    def is_code(self) -> bool:
        """Whether it is neither literal, nor quoted name, nor comment."""
        return self.kind in (TokenKind.WORD, TokenKind.SYMBOL, TokenKind.NUMBER)
