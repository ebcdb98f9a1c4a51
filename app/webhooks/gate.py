"""How many attempts of one endpoint, and of one team, this process makes at once. A receiver that hangs takes its
share, and no more; so does a team with many of them.

Whoever finds no room doesn't wait for long in an activity's place: it is told when to come again. Those times are
spread, so that a thousand deliveries to one dead receiver don't all come back in the same second.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

_PATIENCE_SECONDS = 0.25
"""How long one may wait here for a receiver that answers quickly."""
_SLOW_SECONDS = 1.0
"""An attempt under way for longer than this: there is no point in waiting for it here."""
_FIRST_RETURN_SECONDS = 1.0
_SPACING_SECONDS = 0.1
_FARTHEST_SECONDS = 120.0
_ENDPOINTS_OF_A_TEAM = 8
"""A team may have as many attempts under way as so many of its endpoints."""


class NoRoom(Exception):
    """Come again in `wait` seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"come again in {wait:.1f} s")
        self.wait = wait


class _Lane:
    """Attempts under way of an endpoint or a team, when each began, and the next free time to come again."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.callers = 0
        """Under way or waiting for room."""
        self.running: dict[object, float] = {}
        self.left = asyncio.Event()
        self.next_return = 0.0

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
    async def entered(self, endpoint: int, team: int) -> AsyncIterator[None]:
        """Counts as under way for the block. Raises `NoRoom` before it."""
        deadline = monotonic() + _PATIENCE_SECONDS
        with self._lane(self._lanes, endpoint) as own, self._lane(self._teams, team) as whole:
            while own.full or whole.full:
                await self._wait(endpoint, own if own.full else whole, deadline)
            with own.occupied(), whole.occupied():
                yield

    def book(self, endpoint: int, *, after: float = _FIRST_RETURN_SECONDS) -> float:
        """Seconds, at least `after`, after which to come again: each caller gets another time."""
        lane, now = self._lanes[endpoint], monotonic()
        lane.next_return = max(lane.next_return, now + after) + _SPACING_SECONDS
        wait = lane.next_return - now
        if wait <= max(_FARTHEST_SECONDS, after):
            return wait
        # No delivery is sent away for longer, however many there are.
        lane.next_return -= _SPACING_SECONDS
        return after + random.uniform(_FARTHEST_SECONDS / 2, _FARTHEST_SECONDS)  # noqa: S311 - spreads load

    def reopen(self, endpoint: int) -> None:
        """The receiver answers again: who comes now needn't queue behind those that were sent away."""
        if endpoint in self._lanes:
            self._lanes[endpoint].next_return = 0.0

    @contextmanager
    def _lane(self, lanes: defaultdict[int, _Lane], key: int) -> Iterator[_Lane]:
        """Kept for as long as anyone needs it: two lanes of one endpoint would let in twice as many."""
        lane = lanes[key]
        lane.callers += 1
        try:
            yield lane
        finally:
            lane.callers -= 1
            if not lane.callers and lane.next_return <= monotonic():
                lanes.pop(key, None)

    async def _wait(self, endpoint: int, lane: _Lane, deadline: float) -> None:
        now = monotonic()
        if now >= deadline or min(lane.running.values()) < now - _SLOW_SECONDS:
            raise NoRoom(self.book(endpoint))
        lane.left.clear()
        try:
            async with asyncio.timeout(deadline - now):
                await lane.left.wait()
        except TimeoutError:
            raise NoRoom(self.book(endpoint)) from None
