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
_BEGINNING = re.compile(r"[^\s]|[\u0080-\U0010ffff]")
"""The first character of a token: none but ASCII's white space stands between two."""
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
        self._word_end = 0
        """The end of the last word, whether or not a delimiter cuts it: up to there nothing is read again."""

    def next(self) -> Token | None:
        """None at the end. Raises `SqlError` at what is never closed, or is read differently by some servers."""
        text = self.text
        beginning = _BEGINNING.search(text, self.at)
        if beginning is None:
            if self.comment_start is not None:
                raise SqlError(self.comment_start, "the executable comment that begins here is never closed")
            self.at = len(text)
            return None
        start = beginning.start()
        # Looked for first: what begins with it may be a literal or a comment that is as long as the script.
        if self.delimiter and text.startswith(self.delimiter, start):
            self.at = start + len(self.delimiter)
            return Token(TokenKind.DELIMITER, start, self.at)
        group, end = self._read(start)
        self.at = end
        if group == "open":
            return self._open(start, end)
        if group == "close":
            return self._close(start, end)
        if group == "unclosed":
            raise SqlError(start, f"the {_UNCLOSED[text[start:end]]} that begins here is never closed")
        if self.comment_start is not None and group != "comment" and "*/" in text[start:end]:
            message = "`*/` inside a literal or line comment within an executable comment: servers read it differently"
            raise SqlError(start, message)
        return Token(_KINDS[group], start, end)

    def _read(self, start: int) -> tuple[str, int]:
        """The kind of the token that begins there, and its end. The delimiter cuts words; literals, names and comments
        hide it."""
        if start >= self._word_end:
            match = _TOKENS.match(self.text, start)
            assert match is not None, "any character is a symbol at least"
            assert match.lastgroup is not None
            if match.lastgroup != "word":
                return match.lastgroup, match.end()
            self._word_end = match.end()
        end = self._word_end
        if self.delimiter and (cut := self.text.find(self.delimiter, start, end + len(self.delimiter) - 1)) != -1:
            end = cut
        return "word", end

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
