"""Rows whose statement is longer than a server takes, or than should be in memory.

The tools write every byte of a binary value as two digits, so a row's statement may be twice as long as the limit that
its values kept when they were stored. Such a statement is kept in a file, and run as a prepared one whose long values
are sent in pieces.
"""

import mmap
import re
import tempfile
from collections.abc import Iterator
from typing import IO

import msgspec

from app.engines.dumping import LoadRefused
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps import wire

SPOOLED_BYTES = 8 * 1024 * 1024
"""From this length on a statement is kept in a file. The tools' other ones have about one megabyte."""
_SHOWN_BYTES = 1000
_LONG_BYTES = 65_536
_PIECE_BYTES = 1_048_576
_STATEMENT_BYTES = 4 * 1024 * 1024
_COM_PREPARE, _COM_EXECUTE, _COM_LONG_DATA, _COM_CLOSE = 0x16, 0x17, 0x18, 0x19
_TEXT, _BYTES = 0xFD, 0xFC
"""The types of a parameter: text in the session's character set, and bytes."""
_LITERAL = re.compile(rb"0x(?P<digits>[0-9A-Fa-f]++)|(?P<binary>_binary )?'(?P<text>(?:[^'\\]++|\\.|'')*+)'", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a", b"": b"'"}


class LongStatement:
    """A statement in a file without a name, which is gone when it is closed."""

    def __init__(self, beginning: bytes) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="headwater-row-")  # noqa: SIM115 - closed by `close`
        self._file.write(beginning)
        self.beginning = beginning[:_SHOWN_BYTES]

    def write(self, more: bytes) -> None:
        self._file.write(more)

    def close(self) -> None:
        self._file.close()

    async def run(self, session: MySQLConnection) -> None:
        """Raises `LoadRefused` for a statement that isn't one row; the driver's errors."""
        self._file.flush()
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            statement, values = _with_marks(text)
            await _run(session, statement, values, text)


class _Value(msgspec.Struct, frozen=True):
    start: int
    end: int
    kind: int
    digits: bool


def _with_marks(text: mmap.mmap) -> tuple[bytes, list[_Value]]:
    """The statement with `?` for its long values, and where these are."""
    pieces: list[bytes] = []
    values: list[_Value] = []
    at = length = 0
    for found in _LITERAL.finditer(text):
        digits = found["digits"] is not None
        start, end = found.span("digits" if digits else "text")
        if end - start < _LONG_BYTES:
            continue
        kind = _BYTES if digits or found["binary"] is not None else _TEXT
        values.append(_Value(start, end, kind, digits))
        pieces += [text[at : found.start()], b"?"]
        at = found.end()
        length += len(pieces[-2])
    if length + len(text) - at > _STATEMENT_BYTES:
        raise LoadRefused("a statement of the dump is too long, and isn't one of long values")
    return b"".join([*pieces, text[at:]]), values


def _pieces(value: _Value, text: mmap.mmap) -> Iterator[bytes]:
    at = value.start
    while at < value.end:
        end = min(value.end, at + _PIECE_BYTES)
        if value.digits:
            end -= (end - at) % 2
            yield bytes.fromhex(text[at:end].decode("ascii"))
        else:
            # Nothing is cut between a backslash and what it escapes.
            while end < value.end and _escapes_next(text, at, end):
                end += 1
            yield _ESCAPE.sub(_unescaped, text[at:end])
        at = end


def _escapes_next(text: mmap.mmap, at: int, end: int) -> bool:
    backslashes = 0
    while end - backslashes > at and text[end - backslashes - 1] == ord("\\"):
        backslashes += 1
    return backslashes % 2 == 1


def _unescaped(found: re.Match[bytes]) -> bytes:
    what = found[1] or b""
    return _ESCAPED.get(what, what)


async def _run(session: MySQLConnection, statement: bytes, values: list[_Value], text: mmap.mmap) -> None:
    session._write_bytes(wire.packet(0, bytes([_COM_PREPARE]) + statement))
    session._next_seq_id = 1
    prepared = await session._read_packet()
    number = prepared.get_all_data()[1:5]
    parameters = int.from_bytes(prepared.get_all_data()[7:9], "little")
    if parameters != len(values):
        raise LoadRefused("a statement of the dump has question marks")
    for _ in range(parameters + 1 if parameters else 0):
        await session._read_packet()
    for index, value in enumerate(values):
        for piece in _pieces(value, text):
            session._write_bytes(wire.packet(0, bytes([_COM_LONG_DATA]) + number + index.to_bytes(2, "little") + piece))
            await session._writer.drain()
    types = b"".join(bytes([value.kind, 0]) for value in values)
    nulls = bytes((len(values) + 7) // 8)
    head = bytes([_COM_EXECUTE]) + number + b"\x00" + (1).to_bytes(4, "little")
    session._write_bytes(wire.packet(0, head + (nulls + b"\x01" + types if values else b"")))
    session._next_seq_id = 1
    try:
        await session._read_query_result()
    finally:
        if session.usable:
            session._write_bytes(wire.packet(0, bytes([_COM_CLOSE]) + number))
