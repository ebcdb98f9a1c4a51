"""The bytes of a dump, in parts that are compressed and encrypted each by itself.

A part is one zstd frame in one age file, so that `age --decrypt` and `zstd --decompress` of all parts in order give the
dump back. Memory is bounded by a part's size, and nothing of a part is used before all of it has been checked.
"""

import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import IO, Any, cast

import msgspec
import pyrage
import zstandard
from pyrage.x25519 import Identity, Recipient

PART_BYTES = 8 * 1024 * 1024
"""A part is closed when its compressed size has reached this."""
PART_PLAIN_BYTES = 1024 * 1024 * 1024
"""A part is closed at this size before compression too."""
MAX_PART_BYTES = PART_BYTES + 4 * 1024 * 1024
"""No part is larger, as it is stored."""
STEP_BYTES = 1024 * 1024
"""The most that is given out at once, and the least that is compressed at once: each step goes to a thread, which takes
time."""
_LEVEL = 1
_WINDOW_BYTES = 8 * 1024 * 1024
"""The largest window of a frame that is decompressed; ours have less."""


class SealedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part as it is stored."""

    data: bytearray
    sha256: bytes
    plain_length: int


class CompressedPart(msgspec.Struct, frozen=True, kw_only=True):
    """`pieces` are used up when it is sealed."""

    pieces: list[bytes]
    plain_length: int

    def seal(self, recipient: Recipient) -> SealedPart:
        # Through files written in Python: they let other threads run, which the call for bytes doesn't until its end.
        sink = _HashedSink()
        pyrage.encrypt_io(_Source(self.pieces), sink, [recipient])
        return SealedPart(data=sink.data, sha256=sink.hash.digest(), plain_length=self.plain_length)


class Compressor:
    """Makes parts of a stream."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._begin()

    def feed(self, pieces: Sequence[bytes]) -> CompressedPart | None:
        """Compresses these pieces, of a few MB together at most. Returns a part when one is full."""
        for piece in pieces:
            self._pieces.append(self._frame.compress(piece))
            self._plain += len(piece)
            self._stored += len(self._pieces[-1])
        full = self._stored >= self._part_bytes or self._plain >= PART_PLAIN_BYTES
        return self.finish() if full else None

    def finish(self) -> CompressedPart | None:
        """The last part, if anything is left."""
        if not self._plain:
            return None
        part = CompressedPart(pieces=[*self._pieces, self._frame.flush()], plain_length=self._plain)
        self._begin()
        return part

    def _begin(self) -> None:
        self._frame = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        self._pieces: list[bytes] = []
        self._plain = self._stored = 0


OTHER_HASH = "its SHA-256 is not the manifest's"


class DamagedPart(Exception):
    """A part is damaged. The message says what is wrong."""


def open_part(data: memoryview, sha256: bytes, identity: Identity) -> list[bytes]:
    """The compressed pieces of a part. Raises `DamagedPart`."""
    if hashlib.sha256(data).digest() != sha256:
        raise DamagedPart(OTHER_HASH)
    sink = _Pieces()
    try:
        pyrage.decrypt_io(_Source([data]), sink, [identity])
    except (pyrage.DecryptError, OSError) as fault:
        raise DamagedPart(f"it can't be decrypted: {fault}") from None
    return sink.pieces


def decompress(pieces: list[bytes], plain_length: int) -> Iterator[bytes]:
    """Yields the part's bytes: at most `STEP_BYTES` at once, and never more than `plain_length` in all. Raises
    `DamagedPart`."""
    left = plain_length
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(
            cast(IO[bytes], _Source(pieces))
        ) as frame:
            while step := frame.read(STEP_BYTES):
                left -= len(step)
                if left < 0:
                    raise DamagedPart(f"it holds more than the {plain_length} bytes of the manifest")
                yield step
    except zstandard.ZstdError as fault:
        raise DamagedPart(f"it can't be decompressed: {fault}") from None
    if left:
        raise DamagedPart(f"it holds {left} bytes less than the {plain_length} of the manifest")


class _Source(io.RawIOBase):
    """Reads pieces one after another, and lets each go when it has been read."""

    def __init__(self, pieces: list[bytes] | list[memoryview]) -> None:
        self._pieces: list[Any] = pieces
        self._pieces.reverse()
        self._offset = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while self._pieces:
            piece = self._pieces[-1]
            if self._offset < len(piece):
                end = len(piece) if size < 0 else self._offset + size
                step = bytes(piece[self._offset : end])
                self._offset += len(step)
                return step
            self._pieces.pop()
            self._offset = 0
        return b""


class _HashedSink(io.RawIOBase):
    """Keeps what is written in one piece, and its hash."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        self.hash.update(data)
        return len(data)


class _Pieces(io.RawIOBase):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.pieces.append(bytes(data))
        return len(data)
