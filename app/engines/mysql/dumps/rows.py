"""A fingerprint of a table's rows, made of the bytes in which the server sends them.

The rows come in the order of the clustered index: that of the primary key, else that in which they were inserted. Both
are the same in a copy that was loaded from a dump. What the server sends before the rows (names of database and table,
collations of the session) and after them (counters, the session's state) isn't part of it.
"""

import hashlib

from app.engines.errors import EngineError

EOF_BYTES = 9
"""The length of the packet that ends the rows."""
_MAX_HEAD_BYTES = 16 * 1024 * 1024
_FEW_BYTES = 65_536
"""The most bytes of rows that are counted here. For more the server is asked, which isn't worth it for a small
table."""
_EOF, _ERROR = 0xFE, 0xFF


class RowsDigest:
    """The fingerprint of a result's rows. It is fed with the result in parts, wherever these begin and end."""

    def __init__(self, seed: bytes, kept_back: int = EOF_BYTES) -> None:
        """`seed` says what the rows consist of. `kept_back` is the length of what follows the rows."""
        self._hash = hashlib.sha256(seed)
        self._kept_back = kept_back
        self._head: bytearray | None = bytearray()
        self._tail = b""
        self._few: bytearray | None = bytearray()

    def feed(self, data: bytes) -> None:
        if self._head is not None:
            self._head += data
            end = _end_of_definitions(self._head)
            if end is None:
                if len(self._head) > _MAX_HEAD_BYTES:
                    raise EngineError("the server described a table in too many words")
                return
            data, self._head = bytes(self._head[end:]), None
        if self._few is not None:
            self._few = None if len(self._few) + len(data) > _FEW_BYTES else self._few + data
        if len(data) >= self._kept_back:
            self._hash.update(self._tail)
            self._hash.update(memoryview(data)[: len(data) - self._kept_back])
            self._tail = data[len(data) - self._kept_back :]
        else:
            joined = self._tail + data
            cut = max(0, len(joined) - self._kept_back)
            self._hash.update(joined[:cut])
            self._tail = joined[cut:]

    @property
    def refused(self) -> bytes | None:
        """What came instead of rows, or before them."""
        return None if self._head is None else bytes(self._head)

    @property
    def tail(self) -> bytes:
        return self._tail

    def complete(self) -> bool:
        """Whether the rows were ended, not broken off by an error."""
        return self._head is None and self._tail[:3] == b"\x05\x00\x00" and self._tail[4] == _EOF

    def count(self) -> int | None:
        """How many rows there were; None for more than a few."""
        if self._few is None:
            return None
        at, packets = 0, 0
        while at < len(self._few):
            at += 4 + int.from_bytes(self._few[at : at + 3], "little")
            packets += 1
        return packets - 1

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _end_of_definitions(head: bytearray) -> int | None:
    """Where the rows begin, after the packets that describe the columns; None while that isn't known."""
    at, packets = 0, 0
    while len(head) >= at + 5:
        length = int.from_bytes(head[at : at + 3], "little")
        if packets and head[at + 4] == _EOF and length == EOF_BYTES - 4:
            return at + 4 + length if len(head) >= at + 4 + length else None
        if head[at + 4] == _ERROR:
            return None
        at += 4 + length
        packets += 1
    return None
