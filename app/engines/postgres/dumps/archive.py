"""The stream that `pg_dump --format=custom` writes: a head, the table of contents, then the data.

Only PostgreSQL's source describes it (src/bin/pg_dump: `ReadHead` and `ReadToc` in pg_backup_archiver.c, and
pg_backup_custom.c). It is read while it passes, one entry or piece at a time, so that memory doesn't grow with it.
"""

from collections.abc import Generator

import msgspec

_MAGIC = b"PGDMP"
_VERSIONS = ((1, 14), (1, 15), (1, 16))
"""Of the format. The first is that of pg_dump 13 to 15; 1.16 came with 17."""
_CUSTOM = 1
_TABLE_DATA, _LARGE_OBJECTS = 1, 3
_LARGEST_TEXT = 64 * 2**20
"""The maximum of bytes in one definition. The server itself takes up to a gigabyte."""
_LINES_AFTER_ROWS = 3
"""That pg_dump writes after the rows of a table: the mark of their end, and two that are empty."""


class ArchiveInvalid(Exception):
    """It isn't such a stream, or of an unknown version, or holds something too large."""


class Entry(msgspec.Struct):
    """An entry of the table of contents, with its texts as they were written; None is one that there isn't."""

    id: int
    kind: str
    tag: str
    namespace: str | None
    definition: str | None
    owner: str | None


class Archive:
    """Reads a stream that arrives in pieces, and returns the pieces to pass on."""

    def __init__(self) -> None:
        self.database = ""
        """The name of the database that was dumped."""
        self.server_version = ""
        self.tool_version = ""
        self.rows: dict[int, int] = {}
        """The number of rows in each table's data, by the id of its entry."""
        self.contents_read = False
        """Whether all entries have been seen."""
        self._version = (0, 0)
        self._int_bytes = 4
        self._offset_bytes = 8
        self._buffer = bytearray()
        self._reading = self._read()
        self._wanted = next(self._reading)
        self._entry = bytearray()
        self._complete = bytearray()
        self._block: int | None = None
        self._large_objects = False
        self._in_object = False
        self._left = 0

    def see(self, entry: Entry) -> None:
        """Called with each entry. May change its definition: then the changed one is passed on."""

    def feed(self, piece: bytes) -> bytes:
        """The piece as it is to be passed on; nothing while an entry isn't complete. Raises `ArchiveInvalid`."""
        if self.contents_read:
            self._count(piece)
            return piece
        self._buffer += piece
        try:
            while len(self._buffer) >= self._wanted:
                taken = bytes(self._buffer[: self._wanted])
                del self._buffer[: self._wanted]
                self._wanted = self._reading.send(taken)
        except StopIteration:
            self.contents_read = True
        out, self._complete = bytes(self._complete), bytearray()
        if self.contents_read:
            rest, self._buffer = bytes(self._buffer), bytearray()
            self._count(rest)
            out += rest
        return out

    def finish(self) -> None:
        """Raises `ArchiveInvalid` unless the stream ended where one may end."""
        if not self.contents_read or self._block is not None or self._buffer:
            raise ArchiveInvalid("the dump ends in the middle")

    # Reading the head and the table of contents: each `yield` asks for so many bytes.

    def _read(self) -> Generator[int, bytes, None]:
        yield from self._read_head()
        entries = yield from self._integer()
        self._complete, self._entry = self._entry, bytearray()
        for _ in range(entries):
            yield from self._read_entry()
            self._complete += self._entry
            self._entry.clear()

    def _read_head(self) -> Generator[int, bytes, None]:
        head = yield from self._take(11)
        self._version = (head[5], head[6])
        self._int_bytes, self._offset_bytes = head[8], head[9]
        known = self._version in _VERSIONS and self._int_bytes in (4, 8) and self._offset_bytes in (4, 8)
        if head[:5] != _MAGIC or not known or head[10] != _CUSTOM:
            raise ArchiveInvalid("it isn't a dump that pg_dump made, or one of a later version")
        if self._version >= (1, 15):
            yield from self._take(1)  # how the data is compressed
        else:
            yield from self._integer()
        for _ in range(7):  # when it was made
            yield from self._integer()
        self.database = (yield from self._text()) or ""
        self.server_version = (yield from self._text()) or ""
        self.tool_version = (yield from self._text()) or ""

    def _read_entry(self) -> Generator[int, bytes, None]:
        number = yield from self._integer()
        yield from self._integer()  # whether there is data
        yield from self._text()  # the catalog's oid
        yield from self._text()  # and the object's
        tag = yield from self._text()
        kind = yield from self._text()
        yield from self._integer()  # the section
        begins = len(self._entry)
        definition = yield from self._text()
        ends = len(self._entry)
        yield from self._text()  # how it is dropped
        yield from self._text()  # the statement for its data
        namespace = yield from self._text()
        yield from self._text()  # the tablespace
        yield from self._text()  # the access method
        if self._version >= (1, 16):
            yield from self._integer()  # the kind of relation
        owner = yield from self._text()
        yield from self._text()  # an old property of tables
        while (yield from self._text()) is not None:  # what it depends on
            pass
        yield from self._take(1 + self._offset_bytes)  # where its data begins
        entry = Entry(
            id=number, kind=kind or "", tag=tag or "", namespace=namespace, definition=definition, owner=owner
        )
        self.see(entry)
        if entry.definition != definition:
            self._entry[begins:ends] = self._written(entry.definition or "")

    def _take(self, size: int) -> Generator[int, bytes, bytes]:
        taken = (yield size) if size else b""
        self._entry += taken
        return taken

    def _integer(self) -> Generator[int, bytes, int]:
        taken = yield from self._take(1 + self._int_bytes)
        return -int.from_bytes(taken[1:], "little") if taken[0] else int.from_bytes(taken[1:], "little")

    def _text(self) -> Generator[int, bytes, str | None]:
        size = yield from self._integer()
        if size < 0:
            return None
        if size > _LARGEST_TEXT:
            raise ArchiveInvalid(f"a definition is longer than {_LARGEST_TEXT // 2**20} MiB")
        return (yield from self._take(size)).decode(errors="surrogateescape")

    def _written(self, text: str) -> bytes:
        octets = text.encode(errors="surrogateescape")
        return b"\0" + len(octets).to_bytes(self._int_bytes, "little") + octets

    # Counting the rows of the data: blocks with a head each, of pieces that begin with their length.

    def _count(self, piece: bytes) -> None:
        if self._buffer:
            piece = bytes(self._buffer) + piece
            self._buffer.clear()
        at, end, head = 0, len(piece), 1 + self._int_bytes
        while at < end:
            if self._left:
                upto = min(at + self._left, end)
                if self._block is not None and not self._large_objects:
                    self.rows[self._block] += piece.count(b"\n", at, upto)
                self._left -= upto - at
                at = upto
                continue
            needed = head + 1 if self._block is None else head
            if end - at < needed:
                self._buffer += piece[at:]
                return
            number = int.from_bytes(piece[at + needed - self._int_bytes : at + needed], "little")
            if self._block is None:
                self._begin_block(piece[at], number)
            else:
                self._next_piece(number)
            at += needed

    def _begin_block(self, kind: int, number: int) -> None:
        if kind not in (_TABLE_DATA, _LARGE_OBJECTS):
            raise ArchiveInvalid("the dump is damaged")
        self._block, self._large_objects, self._in_object = number, kind == _LARGE_OBJECTS, False
        if not self._large_objects:
            self.rows[number] = -_LINES_AFTER_ROWS

    def _next_piece(self, number: int) -> None:
        if self._large_objects and not self._in_object:
            # The object's oid, which its pieces follow; 0 after the last.
            self._in_object = number != 0
            self._block = self._block if number else None
        elif number == 0:
            self._in_object = False
            self._block = self._block if self._large_objects else None
        else:
            self._left = number
