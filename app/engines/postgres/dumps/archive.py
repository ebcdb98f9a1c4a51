"""The stream that `pg_dump --format=custom` writes: a head, the table of contents, then the data.

Only PostgreSQL's source describes it (src/bin/pg_dump: `ReadHead` and `ReadToc` in pg_backup_archiver.c, and
pg_backup_custom.c). It is read while it passes, one entry or piece at a time, so that memory doesn't grow with it.
"""

import contextlib
import struct

import msgspec

_MAGIC = b"PGDMP"
_VERSIONS = ((1, 14), (1, 15), (1, 16))
"""The known versions of the format. The first is that of pg_dump 13 to 15; 1.16 came with 17."""
_CUSTOM = 1
_TABLE_DATA, _LARGE_OBJECTS = 1, 3
_HEADS = {4: struct.Struct("<xI"), 8: struct.Struct("<xQ")}
"""A number's sign, which is 0, and the number, by its bytes."""
_NUMBERS = {4: struct.Struct("<BI"), 8: struct.Struct("<BQ")}
"""The same, for numbers whose sign counts."""
_LARGEST_TEXT = 64 * 2**20
"""The maximum of bytes in one definition. The server itself takes up to a gigabyte."""
_ALL = -1
_LINES_AFTER_ROWS = 3
"""The lines that pg_dump writes after the rows of a table: the mark of their end, and two that are empty."""


_NARROW_BYTES = 4
_MARK_OF_END = b"\\.\n"
_AFTER_ROWS = _MARK_OF_END + b"\n\n"
_LAST_LINE_END = b"\n" + bytes(5)
"""The end of a row's line, and the head that says that there are no more."""
_FEW_ROWS = 20
"""So few rows are counted one by one as fast."""


class _MoreNeeded(Exception):
    """More of the stream is needed."""


class ArchiveInvalid(Exception):
    """The stream isn't such an archive, or is of an unknown version, or holds something too large."""


class Entry(msgspec.Struct):
    """An entry of the table of contents, with its texts as they were written; None is for one that there isn't."""

    id: int
    kind: str
    tag: str
    namespace: str | None
    definition: str | None
    copy: str | None
    """The statement that the rows of a table follow."""
    owner: str | None


def _checked(length: int) -> int:
    """Returns the length of a text. Raises `ArchiveInvalid` if it is too long."""
    if length > _LARGEST_TEXT:
        raise ArchiveInvalid(f"a definition is longer than {_LARGEST_TEXT // 2**20} MiB")
    return length


class Archive:
    """Reads a stream that arrives in pieces, and returns the pieces to pass on."""

    def __init__(self, *, counting: bool = True) -> None:
        """`counting`: what follows the table of contents is read too, else only passed on."""
        self._counting = counting
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
        self._head = _HEADS[4]
        self._number = _NUMBERS[4]
        self._buffer = bytearray()
        self._begins = 0
        """What lies before it in the buffer was passed on."""
        self._at = 0
        self._entries_left: int | None = None
        self._complete = bytearray()
        self._block: int | None = None
        self._large_objects = False
        self._in_object = False
        self._left = 0

    def see(self, entry: Entry) -> None:
        """Called with each entry. May change its definition and its copy: then the changed ones are passed on."""

    def feed(self, piece: bytes) -> bytes:
        """The piece as it is to be passed on; nothing while an entry isn't complete. Raises `ArchiveInvalid`."""
        if self.contents_read:
            if self._counting:
                self._count(piece)
            return piece
        self._buffer += piece
        self._read_all()
        out, self._complete = bytes(self._complete), bytearray()
        if self.contents_read:
            rest, self._buffer = bytes(self._buffer), bytearray()
            if self._counting:
                self._count(rest)
            out += rest
        return out

    def finish(self) -> None:
        """Raises `ArchiveInvalid` unless the stream ended where one may end."""
        if not self.contents_read or self._block is not None or self._buffer:
            raise ArchiveInvalid("the dump ends in the middle")

    # Reading the head and the table of contents: each step from its beginning again where more bytes are needed. There
    # may be hundreds of thousands of entries, and everything else of the worker waits meanwhile.

    def _read_all(self) -> None:
        """Reads what the buffer holds, entry by entry."""
        with contextlib.suppress(_MoreNeeded):
            if self._entries_left is None:
                self._read_head()
            while self._entries_left:
                self._read_entry()
                self._entries_left -= 1
            self.contents_read = True
        del self._buffer[: self._begins]
        self._begins = 0

    def _read_head(self) -> None:
        self._at = 0
        head = self._take(11)
        self._version = (head[5], head[6])
        self._int_bytes, self._offset_bytes = head[8], head[9]
        known = self._version in _VERSIONS and self._int_bytes in (4, 8) and self._offset_bytes in (4, 8)
        if head[:5] != _MAGIC or not known or head[10] != _CUSTOM:
            raise ArchiveInvalid("it isn't a dump that pg_dump made, or one of a later version")
        self._head, self._number = _HEADS[self._int_bytes], _NUMBERS[self._int_bytes]
        if self._version >= (1, 15):
            self._take(1)  # how the data is compressed
        else:
            self._integer()
        for _ in range(7):  # when it was made
            self._integer()
        self.database = self._text() or ""
        self.server_version = self._text() or ""
        self.tool_version = self._text() or ""
        self._entries_left = self._integer()
        self._pass_on(self._at)

    def _read_entry(self) -> None:
        self._at = self._begins
        number = self._integer()
        self._integer()  # whether there is data
        self._skip(2)  # the catalog's oid and the object's
        tag = self._text()
        kind = self._text()
        self._integer()  # the section
        begins = self._at
        definition = self._text()
        ends = self._at
        self._skip(1)  # how it is dropped
        copy_begins = self._at
        copy = self._text()
        copy_ends = self._at
        namespace = self._text()
        self._skip(2)  # the tablespace and the access method
        if self._version >= (1, 16):
            self._integer()  # the kind of relation
        owner = self._text()
        self._skip(1)  # an old property of tables
        self._skip(_ALL)  # what it depends on
        self._take(1 + self._offset_bytes)  # where its data begins
        entry = Entry(
            id=number,
            kind=kind or "",
            tag=tag or "",
            namespace=namespace,
            definition=definition,
            copy=copy,
            owner=owner,
        )
        upto = self._at
        self.see(entry)
        if entry.definition != definition:
            self._replace(begins, ends, entry.definition)
        if entry.copy != copy:
            self._replace(copy_begins, copy_ends, entry.copy)
        self._pass_on(upto)

    def _replace(self, begins: int, ends: int, text: str | None) -> None:
        self._pass_on(begins)
        self._complete += self._written(text or "")
        self._begins = ends

    def _pass_on(self, upto: int) -> None:
        self._complete += self._buffer[self._begins : upto]
        self._begins = upto

    def _take(self, size: int) -> bytes:
        begins, self._at = self._at, self._at + size
        if self._at > len(self._buffer):
            raise _MoreNeeded
        return bytes(self._buffer[begins : self._at])

    def _integer(self) -> int:
        try:
            negative: int
            number: int
            negative, number = self._number.unpack_from(self._buffer, self._at)
        except struct.error:
            raise _MoreNeeded from None
        self._at += self._number.size
        return -number if negative else number

    def _skip(self, texts: int) -> None:
        """Skips so many texts, or, with `_ALL`, as many as there are up to one that there isn't. All at once: there may
        be hundreds of thousands of entries, of some ten texts each."""
        read, size, buffer, at = self._number.unpack_from, self._number.size, self._buffer, self._at
        try:
            while texts:
                negative, length = read(buffer, at)
                at += size
                if not negative:
                    at += _checked(length)
                elif texts == _ALL:
                    break
                texts -= texts != _ALL
        except struct.error:
            raise _MoreNeeded from None
        if at > len(buffer):
            raise _MoreNeeded
        self._at = at

    def _text(self) -> str | None:
        length = self._integer()
        if length < 0:
            return None
        begins = self._at
        self._at += _checked(length)
        if self._at > len(self._buffer):
            raise _MoreNeeded
        return self._buffer[begins : self._at].decode(errors="surrogateescape")

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
            if not self._left and self._block is not None and not self._large_objects:
                at = self._count_whole(piece, at, end)
                if at == end:
                    return
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

    def _count_whole(self, piece: bytes, at: int, end: int) -> int:
        """Counts the rows of the pieces of a table's data that are here as a whole, of which each is a row: there are
        millions. Returns where the other pieces begin."""
        assert self._block is not None
        if narrow := self._count_narrow(piece, at, end):
            return narrow
        read, size, rows, find = self._head.unpack_from, self._head.size, 0, piece.find
        while at + size <= end:
            (number,) = read(piece, at)
            upto = at + size + number
            if not number or upto > end:
                break
            # To find one byte is many times faster than to count it.
            rows += 1 if find(b"\n", at + size, upto) == upto - 1 else piece.count(b"\n", at + size, upto)
            at = upto
        self.rows[self._block] += rows
        return at

    def _count_narrow(self, piece: bytes, at: int, end: int) -> int:
        """The same at once, where each row here has less than 256 bytes and none has exactly ten; elsewhere returns 0.

        No text of a row has a zero or an unescaped line end. So the heads of such rows, and no others, have three
        zeros in a row, and there are as many line ends only if each ends a row and none is part of a head.
        """
        assert self._block is not None
        if self._int_bytes != _NARROW_BYTES or end - at < self._head.size:
            return 0
        # Where it begins with the head that says that there are no more, what follows is of another table.
        if not 0 < self._head.unpack_from(piece, at)[0] < 256:
            return 0
        ends = piece.find(_LAST_LINE_END, at, end)
        upto = (piece.rfind(b"\n", at, end) if ends < 0 else ends) + 1
        # Where it ends within what follows the rows, the rest of that comes next.
        if ends < 0 and piece.endswith(_MARK_OF_END, at, upto):
            return 0
        rows, heads = piece.count(b"\n", at, upto), piece.count(bytes(3), at, upto)
        # What follows the rows is one piece of several lines.
        if ends >= 0 and piece.endswith(_AFTER_ROWS, at, upto):
            heads += _LINES_AFTER_ROWS - 1
        if rows < _FEW_ROWS or rows != heads:
            return 0
        self.rows[self._block] += rows
        return upto

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
