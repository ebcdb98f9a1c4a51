"""How many steps of one process work on an engine host at the same time: one that answers nobody takes none of the
others' places."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from time import monotonic

from app.core.limiter import Limiter, LimitReached
from app.engines.base import HostUnavailable

HOST_SLOTS = 8
"""More than this many CREATE DATABASE together make a PostgreSQL server slower, not faster."""
_PATIENCE_SECONDS = 5.0
"""A step takes a fraction of a second: when none has come to its end for so long, the host is stuck."""


class HostSlots:
    """Steps wait for a slot, first come, first served, while those before them come to their ends. Where none does for
    `patience` seconds, nobody waits any longer."""

    def __init__(self, per_host: int = HOST_SLOTS, patience: float = _PATIENCE_SECONDS) -> None:
        self._slots = Limiter[int](per_host)
        self._patience = patience
        self._answered_at: dict[int, float] = {}
        """When a step on the host last ended otherwise than for want of an answer, or began when none was at work.
        Of the hosts on which steps are at work."""

    @asynccontextmanager
    async def slot(self, host_id: int) -> AsyncIterator[None]:
        """For the block. Raises `HostUnavailable` when the host is stuck."""
        async with AsyncExitStack() as held:
            held.callback(self._forget_if_idle, host_id)
            await self._enter(held, host_id)
            self._answered_at.setdefault(host_id, monotonic())
            answered = True
            try:
                yield
            except (HostUnavailable, asyncio.CancelledError):
                answered = False
                raise
            finally:
                if answered:
                    self._answered_at[host_id] = monotonic()

    def is_busy(self, host_id: int) -> bool:
        """Whether steps are at work on it now."""
        return self._slots.held(host_id) > 0

    async def _enter(self, held: AsyncExitStack, host_id: int) -> None:
        while True:
            left = self._answered_at.get(host_id, monotonic()) + self._patience - monotonic()
            if left <= 0 and not self._slots.has_room(host_id):
                raise HostUnavailable(
                    f"the host is stuck: {self._slots.held(host_id)} steps are at work on it, and it has answered none "
                    f"of them for {self._patience:.0f} s"
                )
            # Who waited in vain waits on, if another's step has ended meanwhile.
            with suppress(LimitReached):
                await held.enter_async_context(self._slots.slot(host_id, timeout=max(left, 0)))
                return

    def _forget_if_idle(self, host_id: int) -> None:
        if not self._slots.held(host_id):
            self._answered_at.pop(host_id, None)
