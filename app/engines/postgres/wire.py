"""A limit on the response to one statement: rows are held in memory, and one row may be a gigabyte.

The driver reads a whole message before it looks at it, so the bytes are counted before it gets them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.engines.errors import MAX_RESPONSE_BYTES, ResponseTooLarge

_HEAD = 5
"""The type of a message in one byte, and its length in four (PostgreSQL, frontend/backend protocol, 54.7)."""
_DATA_ROW, _NOTICE, _COPY_DATA = b"DNd"
_DISCARDED = frozenset((_DATA_ROW, _NOTICE, _COPY_DATA))


class Meter(asyncio.Protocol):
    """Sits between a connection's transport and the driver, counts bytes, and aborts the connection when a response
    exceeds `most` bytes: the driver then raises a lost connection, caused by `ResponseTooLarge`."""

    def __init__(self, transport: Any, inner: Any) -> None:
        self._transport = transport
        self._inner = inner
        self._most = MAX_RESPONSE_BYTES
        self._received = 0
        self._exceeded = False
        self._filter: _Filter | None = None

    def begin(self, most: int | None = None) -> None:
        """Resets the count for the next statement; `most`, if given, is the limit from now on."""
        self._received = 0
        self._most = self._most if most is None else most

    @contextmanager
    def at_most(self, more: int) -> Iterator[None]:
        """Within the block not more than `more` further bytes may come."""
        before, self._most = self._most, min(self._most, self._received + more)
        try:
            yield
        finally:
            self._most = before

    def discard_rows(self, *, discarding: bool) -> None:
        """Sets whether rows and notices are discarded as they arrive, without being counted. Call it before a
        session's first statement: from then on messages are parsed."""
        if self._filter is None:
            self._filter = _Filter()
        self._filter.discarding = discarding

    def data_received(self, data: bytes) -> None:
        if self._exceeded:
            return
        if self._filter is not None:
            data = self._filter.kept(data)
        self._received += len(data)
        if self._received > self._most:
            self._exceeded = True
            self._transport.abort()
        elif data:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        answer: bool | None = self._inner.eof_received()
        return answer

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(ResponseTooLarge(self._most) if self._exceeded else exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


class _Filter:
    """Parses messages in a stream that may be cut anywhere."""

    def __init__(self) -> None:
        self.discarding = False
        self._head = b""
        self._left = 0
        self._dropped = False

    def kept(self, data: bytes) -> bytes:
        """Returns the data without the discarded messages."""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            if not self._left:
                at += self._begin(data[at : at + _HEAD - len(self._head)], parts)
                continue
            end = min(at + self._left, len(data))
            if not self._dropped:
                parts.append(data[at:end])
            self._left -= end - at
            at = end
        return b"".join(parts)

    def _begin(self, piece: bytes, parts: list[bytes]) -> int:
        """Reads a piece of a message's head, and returns its length."""
        self._head += piece
        if len(self._head) == _HEAD:
            self._left = int.from_bytes(self._head[1:]) - (_HEAD - 1)
            self._dropped = self.discarding and self._head[0] in _DISCARDED
            if not self._dropped:
                parts.append(self._head)
            self._head = b""
        return len(piece)


def metered(connection: Any) -> Meter:
    """The meter of an open connection; installs one if there is none."""
    transport = connection._transport
    protocol = transport.get_protocol()
    if isinstance(protocol, Meter):
        return protocol
    meter = Meter(transport, protocol)
    transport.set_protocol(meter)
    return meter


def too_large(error: BaseException) -> ResponseTooLarge | None:
    """The error if it was this limit that ended the connection."""
    cause = error.__cause__
    return cause if isinstance(cause, ResponseTooLarge) else None
