"""Octets that are no text, in string literals of a script: dumps without --hex-blob have them in binary columns."""

import re
from collections.abc import Iterator

from app.dialects.errors import SqlError
from app.dialects.mysql.lexer import tokens
from app.dialects.tokens import TokenKind

_OCTET = re.compile("[\udc80-\udcff]")
"""The characters that stand for such octets after a decoder with `surrogateescape` (PEP 383)."""
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
"""MySQL's manual, "String Literals": every other character stands for itself."""


def in_hexadecimal(script: str) -> str:
    """The script with each string literal that holds octets written as `X'…'`, which has the same value wherever such
    a string can stand. In comments they become U+FFFD. Raises `SqlError` at one that stands elsewhere."""
    return "".join(_pieces(script))


def _pieces(script: str) -> Iterator[str]:
    copied = 0
    for token in tokens(script):
        found = _OCTET.search(script, token.start, token.end)
        if found is None:
            continue
        text = script[token.start : token.end]
        yield script[copied : token.start]
        if token.kind is TokenKind.STRING:
            yield f"X'{_value(text).encode(errors='surrogateescape').hex()}'"
        elif token.kind is TokenKind.COMMENT:
            yield _OCTET.sub("\ufffd", text)
        else:
            raise SqlError(found.start(), "an octet that is no text in UTF-8 stands outside of a string")
        copied = token.end
    yield script[copied:]


def _value(literal: str) -> str:
    """What the server makes of a literal with its quotes. The other kind of quote isn't doubled in it."""
    quote = literal[0]

    def read(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped is not None:
            return _ESCAPED.get(escaped, escaped)
        return quote if match[0][0] == quote else match[0]

    return _ESCAPE.sub(read, literal[1:-1])
