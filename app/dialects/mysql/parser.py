"""sqlglot, which reads a statement of MySQL's, guarded: no other module calls its parser.

It tries some of what it reads in several ways, one after the other: `DATE(…)` first as a type, then as a function, and
whatever stands inside again for each. Nested, that takes twice as long with every level, and a thread can't be stopped.
So its steps are counted, and it gives up where no honest text brings it.
"""

import logging
from typing import Any

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokenizer_core import Token

# It would log each statement that it takes as opaque.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Honest statements take four steps for each token at most, and two where they are long.
_LEAST = 1000
_FOR_EACH_TOKEN = 6
_CHARACTERS_OF_A_STEP = 64


class TooInvolved(Exception):
    """The text is nested too deeply, or in a way that takes too many steps."""


class Stumbled(Exception):
    """sqlglot failed with an error that it didn't mean to raise. The message is the error's name."""


class Steps:
    """How many steps were taken in all, and how many may be. A step is a move from one token to another."""

    def __init__(self) -> None:
        self.taken = 0
        self.most = 0

    def allow(self, tokens: list[Token]) -> None:
        """Allows as many more steps as an honest text of these tokens takes, and some."""
        self.most = self.taken + _LEAST + _FOR_EACH_TOKEN * sum(map(_weight, tokens))

    def take(self, token: Token) -> None:
        """Counts a step. Raises `TooInvolved` where there are more than may be."""
        self.taken += _weight(token)
        if self.taken > self.most:
            raise TooInvolved


def parse(text: str, error_level: ErrorLevel | None = None, steps: Steps | None = None) -> list[exp.Expr | None]:
    """A tree for each statement; None for an empty one. Raises `SqlglotError` for what is wrong, and `TooInvolved` and
    `Stumbled` for what may well be right."""
    steps = steps or Steps()
    dialect = _CountedMySQL(steps)
    try:
        tokens = dialect.tokenize(text)
        steps.allow(tokens)
        return dialect.parser(error_level=error_level).parse(tokens, text)
    except (SqlglotError, TooInvolved):
        raise
    except RecursionError:
        raise TooInvolved from None
    except Exception as error:
        raise Stumbled(type(error).__name__) from error


def _weight(token: Token) -> int:
    """How many steps a token counts for: what is made of a long literal or name takes time in proportion to its length,
    each time that it is read."""
    return 1 + len(token.text) // _CHARACTERS_OF_A_STEP


class _CountedMySQL(MySQL):
    """Its parsers share one bound: a name of a type in backticks is parsed too, by a parser of its own."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def parser(self, **options: Any) -> MySQLParser:
        return _Parser(self._steps, dialect=self, **options)


class _Parser(MySQLParser):
    def __init__(self, steps: Steps, **options: Any) -> None:
        super().__init__(**options)
        self._steps = steps

    def _advance(self, times: int = 1) -> None:
        """Counts each move; steps back come here too."""
        super()._advance(times)
        self._steps.take(self._curr)
