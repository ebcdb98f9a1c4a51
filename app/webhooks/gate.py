"""How many attempts of one endpoint, and of one team, this process makes at once. A receiver that hangs takes its
share, and no more; so does a team with many of them. Whoever finds no room is refused after a moment.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

_SLOW_SECONDS = 1.0
"""An attempt under way for longer than this: there is no point in waiting a moment for it."""
_ENDPOINTS_OF_A_TEAM = 8
"""A team may have as many attempts under way as so many of its endpoints."""


class NoRoom(Exception):
    """As many as may be are under way."""


class _Lane:
    """Attempts under way of an endpoint or a team, and when each began."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.callers = 0
        """Under way or waiting for room."""
        self.running: dict[object, float] = {}
        self.left = asyncio.Event()

    @property
    def full(self) -> bool:
        return len(self.running) >= self.limit

    @contextmanager
    def occupied(self) -> Iterator[None]:
        ticket = object()
        self.running[ticket] = monotonic()
        try:
            yield
        finally:
            del self.running[ticket]
            self.left.set()


class Gate:
    """`limit` is the number of attempts at once for one endpoint."""

    def __init__(self, limit: int) -> None:
        self._lanes: defaultdict[int, _Lane] = defaultdict(lambda: _Lane(limit))
        self._teams: defaultdict[int, _Lane] = defaultdict(lambda: _Lane(limit * _ENDPOINTS_OF_A_TEAM))

    @asynccontextmanager
    async def entered(self, endpoint: int, team: int, *, patience: float) -> AsyncIterator[None]:
        """Counts as under way for the block. Waits for room for up to `patience` seconds, and raises `NoRoom` before
        the block: sooner where patience is short and those that are under way hang."""
        deadline = monotonic() + patience
        with self._lane(self._lanes, endpoint) as own, self._lane(self._teams, team) as whole:
            while own.full or whole.full:
                await _wait(own if own.full else whole, deadline)
            with own.occupied(), whole.occupied():
                yield

    @contextmanager
    def _lane(self, lanes: defaultdict[int, _Lane], key: int) -> Iterator[_Lane]:
        """Kept for as long as anyone needs it: two lanes of one endpoint would let in twice as many."""
        lane = lanes[key]
        lane.callers += 1
        try:
            yield lane
        finally:
            lane.callers -= 1
            if not lane.callers:
                lanes.pop(key, None)


async def _wait(lane: _Lane, deadline: float) -> None:
    now = monotonic()
    hanging = min(lane.running.values()) < now - _SLOW_SECONDS
    if now >= deadline or (hanging and deadline < now + _SLOW_SECONDS):
        raise NoRoom
    lane.left.clear()
    try:
        async with asyncio.timeout(deadline - now):
            await lane.left.wait()
    except TimeoutError:
        raise NoRoom from None
