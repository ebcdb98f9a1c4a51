"""A bound on what one statement may send us: rows are held in memory, and one row may be a gigabyte."""

import asyncio
from typing import Any


class Meter(asyncio.Protocol):
    """Stands between a connection's transport and the driver, counts, and cuts the line at `most` octets."""

    def __init__(self, transport: Any, inner: Any) -> None:
        self._transport = transport
        self._inner = inner
        self.most: int | None = None
        self.received = 0
        self.exceeded = False

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.most is not None and self.received > self.most:
            self.exceeded = True
            self._transport.abort()
            return
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        answer: bool | None = self._inner.eof_received()
        return answer

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def metered(connection: Any) -> Meter:
    """Puts a meter into an open connection."""
    transport = connection._transport
    meter = Meter(transport, transport.get_protocol())
    transport.set_protocol(meter)
    return meter
