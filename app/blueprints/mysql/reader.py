"""One MySQL statement as words and symbols, to be read from left to right."""

from dataclasses import dataclass

from app.sql.mysql.lexer import Kind, Token
from app.sql.mysql.splitter import Statement


@dataclass(frozen=True, slots=True)
class Item:
    """`word` is in lower case for keywords and names without quotes, and empty for quoted names and literals."""

    kind: Kind
    word: str
    text: str
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        return self.kind in (Kind.WORD, Kind.QUOTED_NAME)

    @property
    def name(self) -> str:
        """As people write it without quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED_NAME else self.text


class Reader:
    """The items of a statement, without the marks of executable comments, and a place among them."""

    def __init__(self, script: str, statement: Statement) -> None:
        self.items = [_item(script, token) for token in statement.tokens if token.kind not in (Kind.OPEN, Kind.CLOSE)]
        self.at = 0

    @property
    def start(self) -> int:
        return self.items[0].start

    def peek(self, ahead: int = 0) -> Item | None:
        index = self.at + ahead
        return self.items[index] if index < len(self.items) else None

    def word(self, ahead: int = 0) -> str:
        """The keyword or symbol there; empty at the end, and for names and literals in quotes."""
        item = self.peek(ahead)
        return item.word if item else ""

    def take(self, *words: str) -> bool:
        """Steps over these words if they come next."""
        if all(self.word(index) == word for index, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def take_any(self, words: frozenset[str]) -> str | None:
        word = self.word()
        if word in words:
            self.at += 1
            return word
        return None

    def take_name(self) -> str | None:
        """A name, perhaps with its database's before it: `name` or `database.name`."""
        first = self.peek()
        if first is None or not first.is_name:
            return None
        self.at += 1
        if self.word() == "." and (second := self.peek(1)) is not None and second.is_name:
            self.at += 2
            return f"{first.name}.{second.name}"
        return first.name

    def find(self, *words: str, start: int = 0) -> int | None:
        """The index of the first place where these words follow each other."""
        for index in range(start, len(self.items) - len(words) + 1):
            if all(self.items[index + offset].word == word for offset, word in enumerate(words)):
                return index
        return None


def _item(script: str, token: Token) -> Item:
    text = script[token.start : token.end]
    word = text.lower() if token.kind in (Kind.WORD, Kind.SYMBOL) else ""
    return Item(token.kind, word, text, token.start, token.end)
