"""Lines that only psql understands: found before the parser, which would stumble over them."""

import re
from dataclasses import dataclass

from app.dialects.errors import TooManyStatements
from app.dialects.postgres.lexer import tokens
from app.dialects.tokens import TokenKind

_END_OF_DATA = re.compile(r"^\\\.[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MetaCommand:
    offset: int
    name: str
    """With its backslash, such as `\\connect`."""


def set_aside(text: str, *, most: int) -> tuple[str, list[MetaCommand]]:
    """The script with blanks where psql's lines and the rows of COPY stood, and those lines. Raises `SqlError`, and
    `TooManyStatements` for more than `most` of them."""
    found: list[MetaCommand] = []
    if "\\" not in text:
        return text, found
    pieces: list[str] = []
    done = at = 0
    while (line := _next_line_for_psql(text, at)) is not None:
        start, end = line
        # Where nothing follows COPY … FROM stdin, its rows begin at the end of the text.
        if text.startswith("\\", start):
            name = re.match(r"\\[^\s]*", text[start:end])
            assert name is not None
            if len(found) == most:
                raise TooManyStatements(start, most)
            found.append(MetaCommand(start, name.group()))
        pieces += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = at = end
    return "".join([*pieces, text[done:]]), found


def _next_line_for_psql(text: str, start: int) -> tuple[int, int] | None:
    """From where to where the next meta-command or block of COPY rows goes."""
    words: list[str] = []
    for token in tokens(text, start):
        if token.kind is TokenKind.SYMBOL and text[token.start] == "\\":
            end = text.find("\n", token.start)
            return token.start, len(text) if end == -1 else end
        if token.kind is TokenKind.SYMBOL and text[token.start] == ";":
            if words[:1] == ["copy"] and words[-2:] == ["from", "stdin"]:
                return _rows(text, token.end)
            words = []
        elif token.kind is TokenKind.WORD:
            word = text[token.start : token.end].lower()
            # Options may follow: COPY t FROM stdin WITH (…).
            if words[-2:] != ["from", "stdin"]:
                words = [*words[:1], *words[1:][-1:], word] if words else [word]
    return None


def _rows(text: str, semicolon: int) -> tuple[int, int]:
    start = text.find("\n", semicolon)
    if start == -1:
        return len(text), len(text)
    last = _END_OF_DATA.search(text, start)
    return start, last.end() if last else len(text)
