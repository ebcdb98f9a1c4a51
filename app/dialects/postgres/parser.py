"""PostgreSQL's own parser, guarded: nothing that a client sends may bring down the process that asks.

The parser is C and recursive. It gets a stack of its own, and a script whose expressions nest or chain too far for that
stack is refused before it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from google._upb import _message as upb
from google.protobuf.message import DecodeError
from postgast import PgQueryError, parse
from postgast.pg_query_pb2 import Node

from app.dialects.errors import SqlError
from app.dialects.positions import CodePoints
from app.dialects.postgres.depth import check_depth

STACK_BYTES = 64 * 1024 * 1024

# A tree is decoded to a depth of 100 otherwise: `a || b || …` with fifty terms is deeper.
upb.SetAllowOversizeProtos(True)

Result = TypeVar("Result")
_starting = threading.Lock()
# The same threads serve every script: the parser leaves a key of the process's 1,024 behind for each thread it ran in.
_here = threading.local()


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


def parse_statements(text: str, *, most: int | None = None) -> list[ParsedStatement]:
    """All statements of a script. Call it on a deep stack. Raises `SqlError` at the first that doesn't parse, and
    `TooManyStatements` before any is parsed."""
    if (nul := text.find("\0")) != -1:
        raise SqlError(nul, "there is a NUL character here")
    check_depth(text, most)
    try:
        tree = parse(text)
    except PgQueryError as error:
        # The position counts characters, from 1.
        raise SqlError(max(error.cursorpos - 1, 0), error.message) from None
    except DecodeError:
        raise SqlError(0, "the script is nested too deeply") from None
    points = CodePoints(text)
    statements = []
    for raw in tree.stmts:
        start = points.offset(raw.stmt_location)
        end = points.offset(raw.stmt_location + raw.stmt_len) if raw.stmt_len else len(text)
        statements.append(ParsedStatement(start, end, raw.stmt))
    return statements


def on_deep_stack(work: Callable[[], Result]) -> Result:
    """Runs `work` in a thread with room for deep recursion, and waits for it."""
    if getattr(_here, "is_deep", False):
        return work()
    # A thread gets the stack that is in force while it is started, and starts when there is more work than threads.
    with _starting:
        usual = threading.stack_size(STACK_BYTES)
        try:
            promised = _THREADS.submit(work)
        finally:
            threading.stack_size(usual)
    return promised.result()
