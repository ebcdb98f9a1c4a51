"""The statements of a dump, as the tools write it, one after the other while it arrives.

Ends of statements are found as the tools' own clients find them, outside of strings, names and comments. None of the
clients' own commands but `DELIMITER` is known here, so nothing that a tenant wrote can be one.
"""

import re
from collections.abc import AsyncIterator

from app.engines.dumping import LoadRefused
from app.engines.mysql.dumps.long_rows import SPOOLED_BYTES, LongStatement

MAX_STATEMENT_BYTES = 4 * 1024**3
"""Of one row: a server takes values of a gigabyte at most, and the tools write two digits for a byte."""
_BLANK = re.compile(rb"\s*(?:--(?:[ \t][^\n]*)?\n\s*)*")
_DELIMITER = re.compile(rb"DELIMITER (\S+)[ \t]*\n", re.IGNORECASE)
_INSERT = re.compile(
    rb"INSERT (?:IGNORE )?INTO `(?:[^`\n]|``)+` (?:\((?:`(?:[^`\n]|``)+`(?:, )?)+\) )?VALUES\s",
)
_INSERT_END = b");\n"
# What may follow a backslash or a quote decides, so that text is skipped in one go.
_QUOTED = {
    b"'": re.compile(rb"'(?:[^'\\]++|\\.)*+'", re.DOTALL),
    b'"': re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    b"`": re.compile(rb"`[^`]*+`"),
}
_PLAIN = {b"'": re.compile(rb"'[^']*+'"), b'"': re.compile(rb'"[^"]*+"'), b"`": _QUOTED[b"`"]}
_LINE = re.compile(rb"[^\n]*\n")
_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)


class Statements:
    """Feeds on chunks, and yields statements without their delimiters."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = bytearray()
        self._delimiter = b";"
        self._inserted = 0
        self._long: LongStatement | None = None
        self._long_bytes = 0
        self.backslash_escapes = True
        """Whether the server reads a backslash in a string as an escape, which a statement may change."""

    async def __aiter__(self) -> AsyncIterator[bytes | LongStatement]:
        async for chunk in self._chunks:
            if self._long is not None:
                if not self._continues(chunk):
                    continue
                yield self._long
                self._long.close()
                self._long = None
            else:
                self._buffer += chunk
            while (statement := self._next()) is not None:
                yield statement
            if len(self._buffer) > SPOOLED_BYTES:
                self._begin_long()
        if self._long is not None:
            raise LoadRefused("the dump ends within a row")
        self._buffer += b"\n"
        while (statement := self._next()) is not None:
            yield statement
        if bytes(self._buffer).strip():
            raise LoadRefused("the dump ends within a statement")

    def close(self) -> None:
        """Removes what a statement that didn't end has left."""
        if self._long is not None:
            self._long.close()

    def _begin_long(self) -> None:
        if self._delimiter != b";" or not _INSERT.match(self._buffer):
            raise LoadRefused("a statement of the dump is too long")
        # What may be the beginning of its end stays here.
        kept = len(_INSERT_END) - 1
        self._long = LongStatement(bytes(memoryview(self._buffer)[:-kept]))
        self._long_bytes = len(self._buffer) - kept
        del self._buffer[:-kept]
        self._inserted = 0

    def _continues(self, chunk: bytes) -> bool:
        """Whether the long statement ends in this chunk."""
        assert self._long is not None
        self._buffer += chunk
        end = self._buffer.find(_INSERT_END)
        cut = end + 1 if end >= 0 else len(self._buffer) - len(_INSERT_END) + 1
        self._long.write(bytes(memoryview(self._buffer)[:cut]))
        self._long_bytes += cut
        if self._long_bytes > MAX_STATEMENT_BYTES:
            raise LoadRefused("a statement of the dump is too long")
        del self._buffer[: cut + len(self._delimiter) if end >= 0 else cut]
        return end >= 0

    def _next(self) -> bytes | None:
        """The next complete statement; None if more has to come."""
        while True:
            self._drop_blanks()
            if (found := _DELIMITER.match(self._buffer)) is None:
                break
            self._delimiter = found[1]
            del self._buffer[: found.end()]
        end = self._end_of_insert() if self._delimiter == b";" and _INSERT.match(self._buffer) else self._end()
        if end is None:
            return None
        statement = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + len(self._delimiter)]
        self._inserted = 0
        return statement

    def _drop_blanks(self) -> None:
        blank = _BLANK.match(self._buffer)
        if blank is not None and blank.end():
            del self._buffer[: blank.end()]

    def _end_of_insert(self) -> int | None:
        """The tools write no line break within a value."""
        at = self._buffer.find(_INSERT_END, self._inserted)
        self._inserted = max(0, len(self._buffer) - len(_INSERT_END))
        return None if at < 0 else at + 1

    def _end(self) -> int | None:
        marks = re.compile(rb"['\"`#]|--(?=[\s])|/\*(?!M?!)|" + re.escape(self._delimiter))
        quoted = _QUOTED if self.backslash_escapes else _PLAIN
        at = 0
        while (mark := marks.search(self._buffer, at)) is not None:
            what = mark[0]
            if what == self._delimiter:
                return mark.start()
            pattern = _LINE if what in (b"#", b"--") else _COMMENT if what == b"/*" else quoted[what]
            skipped = pattern.match(self._buffer, mark.start())
            if skipped is None:
                return None
            at = skipped.end()
        return None
