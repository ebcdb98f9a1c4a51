"""An open-loop load: requests are sent at their time, whether or not those before are answered, and each one's time
counts from the moment at which it was due. A service that falls behind shows it (no coordinated omission)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import cast
from urllib.parse import urlsplit

import msgspec

from benchmarks.cold_create import quantile
from benchmarks.lean_http import content_length

_MOST_IN_FLIGHT = 2_000
"""A service that answers none of so many is past its limit: the load stops there."""
_PATIENCE_SECONDS = 30.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one rate. `times` are seconds, in order; `late` is how far behind the sender itself was at most."""

    rate: float
    seconds: float
    times: list[float]
    refused: int
    late: float
    fault: str | None = None

    @property
    def reached(self) -> float:
        """Answers a second, until the last one."""
        return len(self.times) / self.seconds

    def at(self, share: float) -> float:
        return quantile(self.times, share) if self.times else float("inf")

    def holds(self, p95: float) -> bool:
        """Whether the service keeps up, with 95 of 100 answers within so many seconds."""
        return not self.refused and self.at(0.95) <= p95 and self.reached >= 0.9 * self.rate


async def run(rate: float, seconds: float, send: Callable[[int], Awaitable[bool]]) -> Load:
    """Calls `send` with 0, 1, 2… at this rate. It returns False for an answer that is not the wanted one, and raises
    what it likes: both count as refused."""
    times: list[float] = []
    faults: list[str] = []
    under_way: set[asyncio.Task[None]] = set()
    started, late = time.perf_counter(), 0.0

    async def one(number: int, due: float) -> None:
        try:
            if not await send(number):
                faults.append("refused")
                return
        except Exception as fault:
            faults.append(repr(fault))
            return
        times.append(time.perf_counter() - due)

    for number in range(int(rate * seconds)):
        due = started + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        late = max(late, time.perf_counter() - due)
        if len(under_way) >= _MOST_IN_FLIGHT:
            faults.append("too many are under way")
            break
        task = asyncio.create_task(one(number, due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    _, unanswered = await asyncio.wait(under_way, timeout=_PATIENCE_SECONDS) if under_way else ((), ())
    for task in unanswered:
        task.cancel()
    await asyncio.gather(*unanswered, return_exceptions=True)
    return Load(
        rate=rate,
        seconds=time.perf_counter() - started,
        times=sorted(times),
        refused=len(faults) + len(unanswered),
        late=late,
        fault=faults[0] if faults else None,
    )


class Connections:
    """Persistent connections to several processes of the API, which take turns; opened as they are needed. Of an answer
    only the status, the length and the body are read."""

    def __init__(self, urls: Sequence[str], api_key: str) -> None:
        parts = [urlsplit(url) for url in urls]
        self._addresses = [(one.hostname or "", one.port or 80) for one in parts]
        self._api_key = api_key
        self._idle: list[list[_Connection]] = [[] for _ in urls]
        self._turn = 0

    async def ask(self, method: str, path: str, *, body: bytes = b"", key: str = "") -> tuple[int, bytes]:
        """Status and body. `key` is the Idempotency-Key."""
        self._turn = (self._turn + 1) % len(self._idle)
        idle, (host, port) = self._idle[self._turn], self._addresses[self._turn]
        while idle and idle[-1].is_closed:
            idle.pop()
        if idle:
            connection = idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(_Connection, host, port)
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {self._api_key}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        answer = await connection.exchange(f"{head}\r\n".encode() + body)
        idle.append(connection)
        return answer

    def close(self) -> None:
        for connection in (one for idle in self._idle for one in idle):
            connection.close()


class _Connection(asyncio.Protocol):
    """One request after the other."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if blank and len(body) >= content_length(head) and self._answer is not None and not self._answer.done():
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed"))

    @property
    def is_closed(self) -> bool:
        """By the service, which had nothing to do on it for too long."""
        return self._transport.is_closing()

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        self._received, self._answer = b"", asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._transport.abort()
