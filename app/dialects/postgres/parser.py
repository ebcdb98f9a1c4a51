"""PostgreSQL's own parser, guarded: nothing that a client sends may bring down the process that asks. No other module
calls the parser.

The parser is C and recursive. It runs in threads with large stacks of their own, so never in an event loop's thread,
and what is too long or nests too far for these stacks is refused before it.
"""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from google._upb import _message as upb
from google.protobuf.message import DecodeError
from postgast import PgQueryError, parse, split
from postgast.pg_query_pb2 import Node

from app.dialects.analysis import MAX_CHARACTERS
from app.dialects.errors import SqlError, TooDeep
from app.dialects.positions import CodePoints
from app.dialects.postgres.depth import check_depth
from app.dialects.postgres.lexer import tokens
from app.dialects.tokens import TokenKind

STACK_BYTES = 64 * 1024 * 1024

# A tree is decoded to a depth of 100 otherwise: `a || b || …` with fifty terms is deeper. The switch is the process's;
# it is set before anything can be parsed, because only this module parses.
upb.SetAllowOversizeProtos(True)

Result = TypeVar("Result")
_starting = threading.Lock()
# The same threads serve every script: the parser leaves a key of the process's 1,024 behind for each thread it ran in.
_here = threading.local()
_WHITE_SPACE = re.compile(r"\s*")


def _mark_deep() -> None:
    _here.is_deep = True


_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="sql-parser", initializer=_mark_deep)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """`start` and `end` are characters of the script, without the semicolon."""

    start: int
    end: int
    node: Node

    @property
    def name(self) -> str:
        """The grammar's name of the statement, such as `create_stmt`."""
        return str(self.node.WhichOneof("node"))

    def first_token(self, script: str) -> int:
        """Where the statement begins behind blanks and comments."""
        match = _WHITE_SPACE.match(script, self.start)
        assert match is not None
        if not script.startswith(("--", "/*"), match.end()):
            return match.end()
        return next(token.start for token in tokens(script, self.start) if token.kind is not TokenKind.COMMENT)


def parse_statements(text: str, *, most: int | None = None) -> list[ParsedStatement]:
    """All statements of a script. Raises `SqlError` at the first that doesn't parse, `TooManyStatements` and `TooDeep`
    before any is parsed."""
    _check_characters(text)
    check_depth(text, most)
    return on_deep_stack(lambda: _parsed(text))


def statement_texts(text: str) -> list[str]:
    """A script that needn't parse, cut at its semicolons as PostgreSQL's scanner does it. Raises `SqlError`."""
    _check_characters(text)
    # What our own lexer can't read might bring down the C scanner.
    for _ in tokens(text):
        pass
    try:
        return on_deep_stack(lambda: list(split(text, method="scanner")))
    except PgQueryError as error:
        raise SqlError(max(error.cursorpos - 1, 0), error.message) from None


def on_deep_stack(work: Callable[[], Result]) -> Result:
    """Runs `work` in a thread with room for deep recursion, and waits for it. Within `work` parsing takes no thread
    more."""
    if getattr(_here, "is_deep", False):
        return work()
    # A thread gets the stack that is in force while it is started, and starts when there is more work than threads.
    with _starting:
        usual = threading.stack_size(STACK_BYTES)
        try:
            submitted = _THREADS.submit(work)
        finally:
            threading.stack_size(usual)
    return submitted.result()


def _check_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise SqlError(MAX_CHARACTERS, f"a script has at most {MAX_CHARACTERS} characters")
    if (nul := text.find("\0")) != -1:
        raise SqlError(nul, "there is a NUL character here")


def _parsed(text: str) -> list[ParsedStatement]:
    try:
        tree = parse(text)
    except PgQueryError as error:
        # The position counts characters, from 1.
        raise SqlError(max(error.cursorpos - 1, 0), error.message) from None
    except DecodeError:
        raise TooDeep(0, "the script is nested too deeply") from None
    points = CodePoints(text)
    statements = []
    for raw in tree.stmts:
        start = points.offset(raw.stmt_location)
        end = points.offset(raw.stmt_location + raw.stmt_len) if raw.stmt_len else len(text)
        statements.append(ParsedStatement(start, end, raw.stmt))
    return statements
