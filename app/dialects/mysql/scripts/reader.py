"""One MySQL statement as words and symbols, to be read from left to right."""

from dataclasses import dataclass

from app.dialects.mysql.splitter import SplitStatement
from app.dialects.tokens import TokenKind

LONGEST_NAME = 200
"""The most characters of a name that messages repeat: there may be one message for each statement. Servers allow 64."""
_MARKS = (TokenKind.OPEN, TokenKind.CLOSE)


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word, symbol, quoted name or literal, and where it stands in the script."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The text in lower case for keywords, names without quotes and symbols; empty for what is quoted."""
        return self.text.lower() if self.kind is TokenKind.WORD or self.kind is TokenKind.SYMBOL else ""

    @property
    def is_name(self) -> bool:
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED_NAME)

    @property
    def name(self) -> str:
        """The name as people write it without quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is TokenKind.QUOTED_NAME else self.text


class Reader:
    """A statement without the marks of executable comments, and a place in it."""

    def __init__(self, script: str, statement: SplitStatement) -> None:
        self._script = script
        self.tokens = statement.tokens
        if statement.has_marks:
            self.tokens = [token for token in self.tokens if token.kind not in _MARKS]
        self.words = [
            script[start:end].lower() if kind is TokenKind.WORD or kind is TokenKind.SYMBOL else ""
            for kind, start, end in self.tokens
        ]
        """Keywords, names without quotes and symbols in lower case; empty for what is quoted."""
        self.vocabulary = frozenset(self.words)
        self.at = 0
        self.database: str | None = None
        """The database that the name taken last has before it."""

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def text(self) -> str:
        return self._script[self.start : self.tokens[-1].end]

    def item(self, index: int) -> Lexeme:
        """A negative index counts from the end."""
        kind, start, end = self.tokens[index]
        return Lexeme(kind, self._script[start:end], start, end)

    def peek(self, ahead: int = 0) -> Lexeme | None:
        index = self.at + ahead
        return self.item(index) if index < len(self.tokens) else None

    def here(self) -> Lexeme:
        """What comes next, or the last item at the end."""
        return self.item(min(self.at, len(self.tokens) - 1))

    def word(self, ahead: int = 0) -> str:
        """The word that comes next; empty at the end too."""
        return self.word_at(self.at + ahead)

    def word_at(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else ""

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
        self.database = None
        if self.word() == "." and (second := self.peek(1)) is not None and second.is_name:
            self.at += 2
            self.database = first.name[:LONGEST_NAME]
            return f"{self.database}.{second.name[:LONGEST_NAME]}"
        return first.name[:LONGEST_NAME]

    def find(self, *words: str) -> int | None:
        """The index of the first place where these words follow each other."""
        if not self.vocabulary.issuperset(words):
            return None
        last = len(self.words) - len(words)
        at = -1
        while True:
            try:
                at = self.words.index(words[0], at + 1)
            except ValueError:
                return None
            if at > last:
                return None
            if tuple(self.words[at : at + len(words)]) == words:
                return at
