"""Turns on the engine hosts: so many steps of one process work on a host at once, and one that answers nobody takes
none of the others' places."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.engines.base import HostUnavailable

AT_ONCE = 8
"""More than this many CREATE DATABASE at once make a PostgreSQL server slower, not faster."""
_PATIENCE_SECONDS = 5.0
"""A step takes a fraction of a second: when none has come to its end for so long, the host is stuck."""


class _Host:
    def __init__(self, at_once: int) -> None:
        self.turns = asyncio.Semaphore(at_once)
        self.at_work = 0
        self.answered_at = 0.0
        """When a step on it last ended otherwise than for want of an answer, or began when none was at work."""


class HostTurns:
    """Who comes waits for a turn, first come, first served, while the steps before it come to their ends. Where none
    does for `patience` seconds, nobody waits any longer."""

    def __init__(self, at_once: int = AT_ONCE, patience: float = _PATIENCE_SECONDS) -> None:
        self._hosts: dict[int, _Host] = defaultdict(lambda: _Host(at_once))
        self._patience = patience

    @asynccontextmanager
    async def on(self, host_id: int) -> AsyncIterator[None]:
        """A turn for the block. Raises `HostUnavailable` when the host is stuck."""
        host = self._hosts[host_id]
        await self._enter(host)
        if not host.at_work:
            host.answered_at = time.monotonic()
        host.at_work += 1
        answered = True
        try:
            yield
        except (HostUnavailable, asyncio.CancelledError):
            answered = False
            raise
        finally:
            if answered:
                host.answered_at = time.monotonic()
            host.at_work -= 1
            host.turns.release()

    async def _enter(self, host: _Host) -> None:
        while True:
            left = host.answered_at + self._patience - time.monotonic()
            if host.turns.locked() and left <= 0:
                raise HostUnavailable(
                    f"the host is stuck: {host.at_work} steps are at work on it, and it has answered none of them "
                    f"for {self._patience:.0f} s"
                )
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    await host.turns.acquire()
            except TimeoutError:
                continue
            return
