"""Rows whose statement is longer than a server takes, or than should be in memory.

The tools write every byte of a binary value as two digits, so a row's statement may be twice as long as the limit that
its values kept when they were stored, and a row may have many such values. It is run as a prepared statement while it
arrives: long values are sent on piece by piece, so that the row is never whole here, neither in memory nor in a file.
"""

import asyncio
import re
import struct
from collections.abc import AsyncIterator

import msgspec

from app.engines.dumping import LoadRefused
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps import wire

LONG_BYTES = 8 * 1024 * 1024
"""From this length on a row is sent in pieces. The tools' statements of several rows have about one megabyte."""
_NAME = rb"`(?:[^`\n]|``)+`"
INSERT = re.compile(
    rb"INSERT (?:IGNORE )?INTO (?P<table>%b) (?:\((?P<columns>%b(?:, %b)*)\) )?VALUES\s" % (_NAME, _NAME, _NAME)
)
_COLUMN = re.compile(_NAME)
_SHOWN_BYTES = 1000
PIECE_BYTES = 65_536
"""How many bytes of a value are read at once: few, because others wait for this process meanwhile."""
SHORT_BYTES = 1024
"""Values up to this length are sent together with the end of the row. A table has 4096 columns at most."""
_COM_PREPARE, _COM_EXECUTE, _COM_LONG_DATA, _COM_CLOSE = 0x16, 0x17, 0x18, 0x19
_NULL, _INTEGER, _BYTES, _TEXT = 0x06, 0x08, 0xFC, 0xFD
"""Types of parameters. Text is in the session's character set."""
_UNSIGNED = 0x80
_BEGINNING = re.compile(rb"(?P<digits>0x)(?=[0-9A-Fa-f])|(?P<plain>NULL|-?[0-9][0-9.eE+-]*+)|(?P<binary>_binary )?'")
_BEGINNING_BYTES = 1024
"""More bytes than a number has, or what stands before a value."""
_DIGITS = re.compile(rb"[0-9A-Fa-f]*+")
_CHARACTERS = re.compile(rb"(?:[^'\\]++|\\.|'')*+", re.DOTALL)
_WHOLE = re.compile(rb"0+|-?[1-9][0-9]{0,19}")
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a", b"": b"'"}


class _Parameter(msgspec.Struct, frozen=True):
    """A value of the row, as the end of the row names it."""

    kind: int
    written: bytes = b""
    """Its bytes; empty for a value that was sent in pieces."""
    flags: int = 0


class LongRow:
    """The statement of one row, of which only the beginning may have arrived."""

    def __init__(self, buffer: bytearray, chunks: AsyncIterator[bytes]) -> None:
        """`buffer` begins with the statement, and `chunks` follow. Raises `LoadRefused` for another statement."""
        head = INSERT.match(buffer)
        if head is None:
            raise LoadRefused("a statement of the dump is too long")
        self.beginning = bytes(buffer[:_SHOWN_BYTES])
        self._head, self._table, self._columns = head[0], head["table"], head["columns"]
        self._buffer = buffer
        self._chunks = chunks
        del buffer[: head.end()]

    async def run(self, session: MySQLConnection) -> None:
        """Runs the statement; afterwards the buffer begins with what follows it. Raises `LoadRefused` for a statement
        that isn't one row as the tools write it; the driver's errors; what `chunks` raises."""
        columns = await self._count_columns(session)
        number = await _prepare(session, self._head, columns)
        parameters = []
        for index in range(columns):
            await self._expect(b"," if index else b"(")
            parameters.append(await self._send_value(session, number, index))
        await self._expect(b");")
        await _execute(session, number, parameters)

    async def _count_columns(self, session: MySQLConnection) -> int:
        if self._columns is not None:
            return len(_COLUMN.findall(self._columns))
        await session.query(b"SELECT * FROM %b LIMIT 0" % self._table)
        return int(session._result.field_count)

    async def _send_value(self, session: MySQLConnection, number: bytes, index: int) -> _Parameter:
        await self._have(_BEGINNING_BYTES, or_all=True)
        found = _BEGINNING.match(self._buffer)
        if found is None:
            raise _not_a_row()
        plain, digits, binary = found["plain"], found["digits"], found["binary"]
        del self._buffer[: found.end()]
        if plain is not None:
            return _plain(plain)
        pieces, kept, sent = self._digits() if digits else self._characters(), b"", False
        async for piece in pieces:
            if sent or len(kept) + len(piece) > SHORT_BYTES:
                await _send_piece(session, number, index, kept + piece)
                kept, sent = b"", True
            else:
                kept += piece
        return _Parameter(_BYTES if digits or binary else _TEXT, b"" if sent else _with_length(kept))

    async def _digits(self) -> AsyncIterator[bytes]:
        """The bytes whose digits are next, up to the first other character."""
        ended = False
        while not ended:
            piece = await self._next_piece()
            found = _DIGITS.match(piece)
            assert found is not None
            ended = found.end() < len(piece)
            end = found.end() if ended else found.end() // 2 * 2
            if end % 2:
                raise _not_a_row()
            yield bytes.fromhex(piece[:end].decode("ascii"))
            del self._buffer[:end]

    async def _characters(self) -> AsyncIterator[bytes]:
        """The text that is next, up to its quote. Nothing is cut between a backslash and what it escapes."""
        ended = False
        while not ended:
            piece = await self._next_piece()
            found = _CHARACTERS.match(piece)
            assert found is not None
            end = found.end()
            # A quote that comes last may be the first of two.
            ended = end < len(piece) - 1
            yield _ESCAPE.sub(_unescaped, piece[:end])
            del self._buffer[: end + ended]

    async def _next_piece(self) -> bytes:
        await self._have(2)
        await asyncio.sleep(0)
        return bytes(memoryview(self._buffer)[:PIECE_BYTES])

    async def _expect(self, what: bytes) -> None:
        await self._have(len(what))
        if not self._buffer.startswith(what):
            raise _not_a_row()
        del self._buffer[: len(what)]

    async def _have(self, length: int, *, or_all: bool = False) -> None:
        """Waits until the buffer has `length` bytes, or, with `or_all`, all that there are."""
        while len(self._buffer) < length:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                if or_all:
                    return
                raise LoadRefused("the dump ends within a row")
            self._buffer += chunk


def _not_a_row() -> LoadRefused:
    return LoadRefused("a statement of the dump is too long, and isn't one row")


def _plain(text: bytes) -> _Parameter:
    """The parameter for a number or NULL. An integer is sent as such, since that of an ENUM, a SET or a YEAR is another
    value as text; other numbers are sent as text, which a server reads as exactly as a literal."""
    if text == b"NULL":
        return _Parameter(_NULL)
    if _WHOLE.fullmatch(text):
        value = int(text)
        if value >= 2**63:
            return _Parameter(_INTEGER, struct.pack("<Q", value), _UNSIGNED) if value < 2**64 else _as_text(text)
        return _Parameter(_INTEGER, struct.pack("<q", value)) if value >= -(2**63) else _as_text(text)
    return _as_text(text)


def _as_text(text: bytes) -> _Parameter:
    return _Parameter(_TEXT, _with_length(text))


def _with_length(value: bytes) -> bytes:
    return (bytes([len(value)]) if len(value) < 251 else b"\xfc" + struct.pack("<H", len(value))) + value


def _unescaped(found: re.Match[bytes]) -> bytes:
    what = found[1] or b""
    return _ESCAPED.get(what, what)


async def _prepare(session: MySQLConnection, head: bytes, columns: int) -> bytes:
    """Prepares the statement, and returns its number."""
    marks = b"(" + b",".join([b"?"] * columns) + b")"
    session._write_bytes(wire.packet(0, bytes([_COM_PREPARE]) + head + marks))
    session._next_seq_id = 1
    prepared = (await session._read_packet()).get_all_data()
    for _ in range(columns + 1):
        await session._read_packet()
    number: bytes = prepared[1:5]
    return number


async def _send_piece(session: MySQLConnection, number: bytes, index: int, piece: bytes) -> None:
    """Sends a piece of a value, which the server doesn't answer."""
    head = bytes([_COM_LONG_DATA]) + number + index.to_bytes(2, "little")
    session._write_bytes(wire.packet(0, head + piece))
    await session._writer.drain()


async def _execute(session: MySQLConnection, number: bytes, parameters: list[_Parameter]) -> None:
    nulls = bytearray((len(parameters) + 7) // 8)
    for index, parameter in enumerate(parameters):
        if parameter.kind == _NULL:
            nulls[index // 8] |= 1 << index % 8
    head = bytes([_COM_EXECUTE]) + number + b"\x00" + (1).to_bytes(4, "little")
    types = b"".join(bytes([parameter.kind, parameter.flags]) for parameter in parameters)
    values = b"".join(parameter.written for parameter in parameters)
    session._write_bytes(wire.packet(0, head + nulls + b"\x01" + types + values))
    session._next_seq_id = 1
    try:
        await session._read_query_result()
    finally:
        if session.usable:
            session._write_bytes(wire.packet(0, bytes([_COM_CLOSE]) + number))
