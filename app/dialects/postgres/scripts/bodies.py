"""The bodies of routines and DO blocks: text to the parser, code to PostgreSQL."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

from app.dialects.errors import SqlError
from app.dialects.postgres.lexer import tokens
from app.dialects.tokens import TokenKind

LANGUAGES = frozenset({"sql", "plpgsql"})
_BEFORE_A_STATEMENT = frozenset({"", ";", "begin", "then", "else", "loop"})
_AFTER_AN_END = frozenset({";", "", "and", "work", "transaction"})


@dataclass(frozen=True, slots=True)
class Body:
    """Words and symbols in lower case, without comments and literals, each with its place in the body."""

    words: list[tuple[int, str]]

    def transaction_control(self) -> int | None:
        """Where the body first commits or rolls back."""
        before = ""
        for index, (offset, word) in enumerate(self.words):
            after = self.words[index + 1][1] if index + 1 < len(self.words) else ""
            if word in ("commit", "rollback") and before in _BEFORE_A_STATEMENT and after in _AFTER_AN_END:
                return offset
            before = word
        return None

    def extensions(self) -> Iterator[tuple[int, str, bool]]:
        """The extensions that it creates, and whether only if they aren't there."""
        words = self.words
        for index in range(len(words) - 2):
            if words[index][1] == "create" and words[index + 1][1] == "extension":
                name = index + 2
                if if_not_exists := [word for _, word in words[name : name + 3]] == ["if", "not", "exists"]:
                    name += 3
                if name < len(words):
                    yield *words[name], if_not_exists

    def first(self, names: Set[str]) -> tuple[int, str] | None:
        """The first of these words."""
        return next(((offset, word) for offset, word in self.words if word in names), None)


def read(text: str) -> Body:
    """Reads a body. One that can't be read is empty here; the server will say so."""
    words = []
    try:
        for token in tokens(text):
            if token.kind in (TokenKind.WORD, TokenKind.SYMBOL):
                words.append((token.start, text[token.start : token.end].lower()))
            elif token.kind is TokenKind.QUOTED_NAME:
                words.append((token.start, text[token.start + 1 : token.end - 1]))
    except SqlError:
        return Body([])
    return Body(words)


def text_of(options: Any) -> str | None:
    """The body among a routine's or DO block's options; None for one that is SQL or a link to a library."""
    for option in options:
        if option.def_elem.defname == "as":
            argument = option.def_elem.arg
            items = argument.list.items if argument.HasField("list") else [argument]
            return str(items[0].string.sval) if len(items) == 1 else None
    return None


def language(options: Any, default: str) -> str:
    """The language among the options, in lower case, or `default`."""
    for option in options:
        if option.def_elem.defname == "language":
            return str(option.def_elem.arg.string.sval).lower()
    return default


def place(script: str, start: int, end: int, body: str) -> int:
    """Where the body stands in the script, if it stands there as it is; else where the statement starts."""
    found = script.find(body, start, end) if body else -1
    return start if found == -1 else found
