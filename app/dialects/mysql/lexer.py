"""The tokens of MySQL's and MariaDB's SQL, for a session without ANSI_QUOTES and NO_BACKSLASH_ESCAPES.

Comments that are code for some versions (`/*!40101 … */`, `/*M! … */`) are read as code, whatever the version.
"""

import re
from collections.abc import Iterator

from app.dialects.errors import SqlError
from app.dialects.tokens import Token, TokenKind

_TOKENS = re.compile(
    r"""
      (?P<word>[0-9A-Za-z_$\u0080-\U0010ffff]+)
    | (?P<string>'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+'|"[^"\\]*+(?:(?:""|\\.)[^"\\]*+)*+")
    | (?P<name>`[^`]*+(?:``[^`]*+)*+`)
    | (?P<line_comment>\#[^\n]*|--(?=[\x20\x00-\x1f\x7f]|\Z)[^\n]*)
    | (?P<sandbox>/\*M!999999\\-[^*]*\*/)
    | (?P<open>/\*M?!(?:[0-9]{5,6})?)
    | (?P<comment>/\*.*?\*/)
    | (?P<close>\*/)
    | (?P<unclosed>['"`]|/\*)
    | (?P<symbol>[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "word": TokenKind.WORD,
    "string": TokenKind.STRING,
    "name": TokenKind.QUOTED_NAME,
    "line_comment": TokenKind.COMMENT,
    "comment": TokenKind.COMMENT,
    # What mariadb-dump begins with: an order to the client, of a version that no server has.
    "sandbox": TokenKind.COMMENT,
    "symbol": TokenKind.SYMBOL,
}
_UNCLOSED = {"'": "string", '"': "string", "`": "quoted name", "/*": "comment"}


class Lexer:
    """Tokens one after the other, without white space. `delimiter` may be changed between two of them."""

    def __init__(self, text: str, at: int = 0, delimiter: str = "") -> None:
        self.text = text
        self.at = at
        self.delimiter = delimiter
        self.comment_start: int | None = None
        """Where the executable comment began that the next token is in."""

    def next(self) -> Token | None:
        """None at the end. Raises `SqlError` at what is never closed, or is read differently by some servers."""
        text = self.text
        match = _TOKENS.search(text, self.at)
        if match is None:
            if self.comment_start is not None:
                raise SqlError(self.comment_start, "the executable comment that begins here is never closed")
            self.at = len(text)
            return None
        start, end = match.span()
        if self.delimiter and (cut := self._delimiter(match, start, end)) is not None:
            if cut == start:
                self.at = start + len(self.delimiter)
                return Token(TokenKind.DELIMITER, start, self.at)
            end = cut
        self.at = end
        group = match.lastgroup
        assert group is not None
        if group == "open":
            return self._open(start, end)
        if group == "close":
            return self._close(start, end)
        if group == "unclosed":
            raise SqlError(start, f"the {_UNCLOSED[match.group()]} that begins here is never closed")
        if self.comment_start is not None and group != "comment" and "*/" in text[start:end]:
            message = "`*/` inside a literal or line comment within an executable comment: servers read it differently"
            raise SqlError(start, message)
        return Token(_KINDS[group], start, end)

    def _delimiter(self, match: re.Match[str], start: int, end: int) -> int | None:
        """Where the delimiter cuts the match; literals, names and comments hide it."""
        if match.lastgroup == "word":
            found = self.text.find(self.delimiter, start, end + len(self.delimiter) - 1)
            return found if found != -1 and found < end else None
        if self.text.startswith(self.delimiter, start):
            return start
        return None

    def _open(self, start: int, end: int) -> Token:
        if self.comment_start is not None:
            raise SqlError(start, "executable comments inside each other: servers read them differently")
        self.comment_start = start
        return Token(TokenKind.OPEN, start, end)

    def _close(self, start: int, end: int) -> Token:
        if self.comment_start is None:
            self.at = start + 1
            return Token(TokenKind.SYMBOL, start, self.at)
        self.comment_start = None
        return Token(TokenKind.CLOSE, start, end)


def tokens(text: str) -> Iterator[Token]:
    """All tokens. Raises `SqlError`."""
    lexer = Lexer(text)
    while (token := lexer.next()) is not None:
        yield token
