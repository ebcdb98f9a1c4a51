"""Where each statement of a MySQL script begins and ends, as the mysql client and its DELIMITER lines have it.

Two things go beyond the client. The body of a routine may hold semicolons without a DELIMITER around it. And under
another delimiter semicolons still end plain statements, as the server itself has it.
"""

import re
from dataclasses import dataclass, field

from app.dialects.errors import SqlError, TooManyStatements
from app.dialects.mysql.blocks import Blocks
from app.dialects.mysql.lexer import Lexer
from app.dialects.tokens import Token, TokenKind

_DELIMITER = re.compile(r"delimiter(?:[ \t]+([^\s]+))?[^\n]*", re.IGNORECASE)
MAX_DELIMITER = 16
"""The most characters of a delimiter, as in the client; each token is compared with it."""
_ROUTINES = frozenset({"procedure", "function", "trigger", "event"})
# Between CREATE and what is created there can be so many.
_HEADER_TOKENS = 40


@dataclass(slots=True)
class SplitStatement:
    """`tokens` are without comments; `start` and `end` are of the first and last of them."""

    tokens: list[Token] = field(default_factory=list)
    has_marks: bool = False
    """Whether parts are in executable comments."""

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end


@dataclass(frozen=True, slots=True)
class Split:
    """The statements up to `error`, if the script can't be read further."""

    statements: list[SplitStatement]
    error: SqlError | None = None


def split(text: str, *, single: bool = False, most: int | None = None) -> Split:
    """Splits a script. `single`: the text was cut out of a script as one statement, so a routine in it ends where the
    text does. With more than `most` statements, empty ones counted, the error is `TooManyStatements`."""
    splitter = _Splitter(text, single, most)
    try:
        splitter.run()
    except SqlError as error:
        return Split(splitter.statements, error)
    return Split(splitter.statements)


class _Splitter:
    def __init__(self, text: str, single: bool, most: int | None) -> None:
        self.statements: list[SplitStatement] = []
        self._text = text
        self._lexer = Lexer(text, delimiter=";")
        self._single = single
        self._most = most
        self._ended = 0
        self._begin()

    def _begin(self) -> None:
        self._current = SplitStatement()
        self._routine: bool | None = None
        self._blocks = Blocks()

    def run(self) -> None:
        while (token := self._lexer.next()) is not None:
            kind = token.kind
            if kind is TokenKind.COMMENT:
                continue
            if kind is TokenKind.DELIMITER:
                if self._ended == self._most:
                    raise TooManyStatements(token.start, self._ended)
                if not self._continues(token):
                    self._end()
                continue
            if not self._current.tokens:
                if self._is_delimiter_line(token):
                    continue
                if self._ended == self._most:
                    raise TooManyStatements(token.start, self._ended)
            self._current.tokens.append(token)
            if kind is TokenKind.OPEN or kind is TokenKind.CLOSE:
                self._current.has_marks = True
            elif self._routine is not False:
                self._track_body(token)
            if kind is TokenKind.SYMBOL and self._lexer.delimiter != ";" and self._is_semicolon(token):
                self._end_at_semicolon()
        self._end()

    def _end_at_semicolon(self) -> None:
        """Ends the statement, except in routines: the server itself splits at a semicolon."""
        if not self._is_routine():
            self._current.tokens.pop()
            self._end()

    def _continues(self, token: Token) -> bool:
        """Whether the semicolon is part of a routine's body; it is added to the statement then."""
        if self._lexer.delimiter != ";" or not self._is_routine():
            return False
        if not self._single and not self._blocks.open:
            return False
        semicolon = Token(TokenKind.SYMBOL, token.start, token.end)
        self._current.tokens.append(semicolon)
        self._track_body(semicolon)
        return True

    def _end(self) -> None:
        self._ended += 1
        # A comment may open before a statement and close after its delimiter: `/*!50003 CREATE … */;;`
        if any(token.kind not in (TokenKind.OPEN, TokenKind.CLOSE) for token in self._current.tokens):
            self._refuse_dashes(self._current)
            self.statements.append(self._current)
        self._begin()

    def _refuse_dashes(self, statement: SplitStatement) -> None:
        """Refuses `--` at the very end of a statement: in what is sent it is a comment, which it is not in the
        script."""
        if self._text[statement.start : statement.end].endswith("--") and statement.tokens[-1].kind is TokenKind.SYMBOL:
            raise SqlError(statement.end - 2, "`--` begins a comment only before a blank or at the end of a line")

    def _is_semicolon(self, token: Token) -> bool:
        return token.kind is TokenKind.SYMBOL and self._text[token.start] == ";"

    def _is_delimiter_line(self, token: Token) -> bool:
        if token.kind is not TokenKind.WORD or self._text[token.start : token.end].lower() != "delimiter":
            return False
        match = _DELIMITER.match(self._text, token.start)
        assert match is not None
        if not match.group(1):
            raise SqlError(token.start, "DELIMITER needs the new delimiter after it")
        if "\\" in match.group(1):
            raise SqlError(token.start, "a delimiter can't hold a backslash")
        if len(match.group(1)) > MAX_DELIMITER:
            raise SqlError(token.start, f"a delimiter has at most {MAX_DELIMITER} characters")
        self._lexer.delimiter = match.group(1)
        self._lexer.at = match.end()
        return True

    def _track_body(self, token: Token) -> None:
        if self._is_routine():
            self._blocks.see(
                self._text[token.start : token.end].lower() if token.kind is not TokenKind.STRING else "''"
            )

    def _is_routine(self) -> bool:
        """Whether the current statement creates something with a body."""
        if self._routine is None:
            tokens = self._current.tokens
            words = [self._text[start:end].lower() for kind, start, end in tokens if kind is TokenKind.WORD]
            if len(tokens) > _HEADER_TOKENS or words[:1] not in ([], ["create"]):
                self._routine = False
            elif words and words[-1] in _ROUTINES:
                self._routine = True
            elif words and self._is_parenthesis(tokens[-1]):
                self._routine = False
        return bool(self._routine)

    def _is_parenthesis(self, token: Token) -> bool:
        return token.kind is TokenKind.SYMBOL and self._text[token.start] == "("
