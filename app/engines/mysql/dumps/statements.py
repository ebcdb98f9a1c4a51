"""The statements of a dump, as the tools write it, one after the other while it arrives.

Ends of statements are found as the tools' own clients find them, outside of strings, names and comments. None of the
clients' own commands but `DELIMITER` is known here, so nothing that a tenant wrote can be one.
"""

import re
from collections.abc import AsyncIterator

from app.engines.dumping import LoadRefused
from app.engines.mysql.dumps.long_rows import INSERT, LONG_BYTES, LongRow

_BLANK = re.compile(rb"\s*(?:--(?:[ \t][^\n]*)?\n\s*)*")
_DELIMITER = re.compile(rb"DELIMITER (\S+)[ \t]*\n", re.IGNORECASE)
_UNFINISHED_DELIMITER = re.compile(rb"DELIMITER [^\n]*\Z", re.IGNORECASE)
_INSERT_END = b");\n"
# What may follow a backslash or a quote decides, so that text is skipped in one go.
_QUOTED = {
    b"'": re.compile(rb"'(?:[^'\\]++|\\.)*+'", re.DOTALL),
    b'"': re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    b"`": re.compile(rb"`[^`]*+`"),
}
_PLAIN = {b"'": re.compile(rb"'[^']*+'"), b'"': re.compile(rb'"[^"]*+"'), b"`": _QUOTED[b"`"]}
_LINE = re.compile(rb"[^\n]*\n")
_MARK_BYTES = 64
_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)


class Statements:
    """Feeds on chunks, and yields statements without their delimiters."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = bytearray()
        self._delimiter = b";"
        self._inserted = 0
        self._passed = 0
        """A place in the statement that is incomplete yet, before which it doesn't end."""
        self.backslash_escapes = True
        """Whether the server reads a backslash in a string as an escape, which a statement may change."""

    async def __aiter__(self) -> AsyncIterator[bytes | LongRow]:
        """A long row has to be run before the next statement is asked for: it reads its own rest."""
        async for chunk in self._chunks:
            self._buffer += chunk
            async for statement in self._arrived():
                yield statement
        self._buffer += b"\n"
        async for statement in self._arrived():
            yield statement
        if bytes(self._buffer).strip():
            raise LoadRefused("the dump ends within a statement")

    async def _arrived(self) -> AsyncIterator[bytes | LongRow]:
        while True:
            if (statement := self._next()) is not None:
                yield statement
            elif len(self._buffer) > LONG_BYTES:
                if self._delimiter != b";":
                    raise LoadRefused("a statement of the dump is too long")
                self._inserted = 0
                yield LongRow(self._buffer, self._chunks)
            else:
                return

    def _next(self) -> bytes | None:
        """The next complete statement; None if more has to come."""
        while True:
            self._drop_blanks()
            if (found := _DELIMITER.match(self._buffer)) is None:
                break
            self._delimiter = found[1]
            del self._buffer[: found.end()]
        if _UNFINISHED_DELIMITER.match(self._buffer):
            # What it names may be the end of a statement that is none.
            return None
        end = self._end_of_insert() if self._delimiter == b";" and INSERT.match(self._buffer) else self._end()
        if end is None:
            return None
        statement = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + len(self._delimiter)]
        self._inserted = self._passed = 0
        return statement

    def _drop_blanks(self) -> None:
        blank = _BLANK.match(self._buffer)
        if blank is not None and blank.end():
            del self._buffer[: blank.end()]

    def _end_of_insert(self) -> int | None:
        """The place where an INSERT ends; None if more has to come. The tools write no line break within a value."""
        at = self._buffer.find(_INSERT_END, self._inserted)
        self._inserted = max(0, len(self._buffer) - len(_INSERT_END))
        return None if at < 0 else at + 1

    def _end(self) -> int | None:
        marks = re.compile(rb"['\"`#]|--(?=[\s])|/\*(?!M?!)|" + re.escape(self._delimiter))
        quoted = _QUOTED if self.backslash_escapes else _PLAIN
        at = self._passed
        while (mark := marks.search(self._buffer, at)) is not None:
            what = mark[0]
            if what == self._delimiter:
                return mark.start()
            pattern = _LINE if what in (b"#", b"--") else _COMMENT if what == b"/*" else quoted[what]
            skipped = pattern.match(self._buffer, mark.start())
            if skipped is None:
                self._passed = mark.start()
                return None
            at = skipped.end()
        # What may be the beginning of a mark is looked at again.
        self._passed = max(at, len(self._buffer) - _MARK_BYTES)
        return None
