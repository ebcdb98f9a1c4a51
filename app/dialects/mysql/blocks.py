"""Whether the body of a MySQL routine is finished: BEGIN, IF, CASE, loops, and their ENDs.

The words are ambiguous: IF and REPEAT are functions too, CASE is an expression too, and BEGIN and END may be names of
columns. The word before one decides.
"""

from dataclasses import dataclass, field

_BEGINS_AFTER = frozenset({";", "begin", "then", "else", "do", "loop", "repeat", ":"})
# The last words of what precedes a body: parameters, characteristics, FOR EACH ROW.
_BODY_AFTER = frozenset({")", "row", "sql", "data", "deterministic", "invoker", "definer", "''"})
_AFTER_END = frozenset({"if", "case", "loop", "while", "repeat", "for"})
_EXPRESSION = "case expression"


@dataclass(slots=True)
class Blocks:
    """Sees the words and symbols of a CREATE statement in lower case, one by one."""

    _stack: list[str] = field(default_factory=list)
    _parentheses: int = 0
    _before: str = ""
    _closed: bool = False
    _in_handler: bool = False

    @property
    def open(self) -> bool:
        return bool(self._stack)

    def see(self, word: str) -> None:
        closing = self._closed
        self._closed = False
        if word == "(":
            self._parentheses += 1
        elif word == ")":
            self._parentheses -= 1
        elif closing and word in _AFTER_END:
            pass
        elif word == "end" and self._stack and self._before != ".":
            self._stack.pop()
            self._closed = True
        elif (block := self._begun_by(word)) is not None:
            self._stack.append(block)
        if word in ("handler", ";"):
            self._in_handler = word == "handler"
        self._before = word

    def _begun_by(self, word: str) -> str | None:
        match word:
            case "case" if self._before != ".":
                return "case" if self._begins_statement() else _EXPRESSION
            case "begin" if self._begins_statement() or self._in_handler or not self._stack:
                return word
            case "if" | "repeat" | "for" | "loop" | "while" if self._begins_statement():
                return word
            case _:
                return None

    def _begins_statement(self) -> bool:
        if self._parentheses:
            return False
        if not self._stack:
            return self._before in _BODY_AFTER or self._before == ":"
        return self._before in _BEGINS_AFTER and self._stack[-1] != _EXPRESSION
