"""Connections to receivers that serve several requests, in a pool for each receiver.

In a pool for all of them, a request costs more with each connection of the others, and above httpcore's bound of idle
connections, which counts those in use too, none is kept: a hundred receivers that hang would have every other one
connected to anew for each request.
"""

import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from time import monotonic

import httpcore

from app.webhooks.egress.guard import Guard, GuardedBackend

_IDLE_SECONDS = 5.0
_PER_RECEIVER = 40
"""Connections to one receiver above which none is kept."""
_UNUSED = 100
"""Connections that are kept to receivers to which nothing is being sent."""


class _Receiver:
    def __init__(self, pool: httpcore.AsyncConnectionPool) -> None:
        self.pool = pool
        self.requests = 0
        """How many requests are under way."""
        self.used_at = monotonic()


class ReceiverConnections:
    """The pools of all receivers; they dial what the guard admits."""

    def __init__(self, new_context: Callable[[], ssl.SSLContext], guard: Guard, *, unused: int = _UNUSED) -> None:
        """`new_context` is called once, before the first connection; `unused` is how many are kept to receivers to
        which nothing is being sent."""
        self._new_context = new_context
        self._unused = unused
        self._guard = guard
        self._receivers: OrderedDict[tuple[str, int], _Receiver] = OrderedDict()
        """The one that was used longest ago first."""

    @asynccontextmanager
    async def of(self, host: str, port: int) -> AsyncIterator[httpcore.AsyncConnectionPool]:
        """The pool for a request to this receiver."""
        place = (host, port)
        receiver = self._receivers.get(place) or _Receiver(self._new_pool())
        self._receivers[place] = receiver
        receiver.requests += 1
        try:
            await self._close_unused()
            yield receiver.pool
        finally:
            receiver.requests -= 1
            receiver.used_at = monotonic()
            self._receivers.move_to_end(place)

    async def close(self) -> None:
        while self._receivers:
            _, receiver = self._receivers.popitem()
            await receiver.pool.aclose()

    async def _close_unused(self) -> None:
        unused = {place: one for place, one in self._receivers.items() if not one.requests}
        count = sum(len(one.pool.connections) for one in unused.values())
        for place, one in unused.items():
            if count <= self._unused and monotonic() - one.used_at <= _IDLE_SECONDS:
                break
            count -= len(one.pool.connections)
            # Another request may have come to it while one was being closed.
            if not one.requests and self._receivers.get(place) is one:
                del self._receivers[place]
                await one.pool.aclose()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return self._new_context()

    def _new_pool(self) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=self._context,
            network_backend=GuardedBackend(self._guard),
            max_connections=None,
            max_keepalive_connections=_PER_RECEIVER,
            keepalive_expiry=_IDLE_SECONDS,
        )
