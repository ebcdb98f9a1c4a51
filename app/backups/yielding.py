"""A backup that nobody waits for gives way to those who work on the same host.

The host is busy while its clients are at work, which its server is asked a few times a second, or while this region's
worker makes, opens or closes databases there. Then the dump is read in small steps, one at a time, with pauses that are
much longer than the steps: so that a core stays free, and few of the clients' statements meet a step at all. A dump
takes a multiple of its time so, not for ever: pauses have a bound of their own, after which it goes on at full speed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

from app.core.background import repeating
from app.engines.pacing import DumpStep, Pace

_PAUSES = 20.0
"""A pause lasts this many times as long as its step."""
_BYTES_A_SECOND = 2**20 * 16
"""The most that is read in a second while a dump is slow: what a pipe and a socket hold comes at once, and the time of
such a step says nothing of what it took."""
_LONGEST_SECONDS = 1.0
_SLICE_SECONDS = 0.05
"""A pause is slept in such slices, and ends early when the host has come to rest."""
_LOOK_SECONDS = 0.25


class GivingWay(Pace):
    """A pace that is slow while `is_busy`, until its pauses have taken `most_seconds` together. `paused` is called with
    each pause's seconds."""

    def __init__(
        self,
        is_busy: Callable[[], bool],
        most_seconds: float,
        paused: Callable[[float], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._is_busy = is_busy
        self._most_seconds = most_seconds
        self._paused = paused
        self._sleep = sleep
        self._clock = clock
        self._turn = asyncio.Lock()
        self.paused_seconds = 0.0

    @property
    def slow(self) -> bool:
        return self.paused_seconds < self._most_seconds and self._is_busy()

    @asynccontextmanager
    async def step(self) -> AsyncIterator[DumpStep]:
        step = DumpStep()
        if not self.slow:
            yield step
            return
        async with self._turn:
            began = self._clock()
            yield step
            await self._pause(max(_PAUSES * (self._clock() - began), step.size / _BYTES_A_SECOND))

    async def _pause(self, seconds: float) -> None:
        left = min(seconds, _LONGEST_SECONDS)
        while left > 0 and self.slow:
            slept = min(left, _SLICE_SECONDS)
            await self._sleep(slept)
            left -= slept
            self.paused_seconds += slept
            self._paused(slept)


@asynccontextmanager
async def looking(look: Callable[[], Awaitable[bool]]) -> AsyncIterator[Callable[[], bool]]:
    """Yields a function that returns what `look` said last; False while `look` fails. `look` is called a few times a
    second during the block."""
    said = False

    async def ask() -> None:
        nonlocal said
        try:
            said = await look()
        except Exception:
            said = False
            raise

    async with repeating(ask, _LOOK_SECONDS, failure="host_load_not_seen", at_once=True):
        yield lambda: said
