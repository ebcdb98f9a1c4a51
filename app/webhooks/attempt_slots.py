"""How many attempts of one endpoint, and of one team, this process makes at the same time. A receiver that hangs takes
its share, and no more; so does a team with many of them. An attempt that finds no room is refused after a moment.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from app.core.limiter import Limiter, LimitReached

_SLOW_SECONDS = 1.0
"""There is no point in waiting a moment for an attempt that has been under way for longer than this."""
_ENDPOINTS_OF_A_TEAM = 8
"""A team may have as many attempts under way as this number of endpoints together."""


class AttemptSlots:
    """`limit` is the number of attempts of one endpoint."""

    def __init__(self, limit: int) -> None:
        self._of_endpoint = Limiter[int](limit)
        self._of_team = Limiter[int](limit * _ENDPOINTS_OF_A_TEAM)

    def __len__(self) -> int:
        """How many endpoints have an attempt under way or waiting."""
        return len(self._of_endpoint)

    @asynccontextmanager
    async def slot(self, endpoint: int, team: int, *, patience: float) -> AsyncIterator[None]:
        """Holds a slot during the block. Waits for up to `patience` seconds, and raises `LimitReached` before the
        block: sooner where patience is short and the attempts under way hang."""
        deadline = monotonic() + patience
        async with (
            self._of_endpoint.slot(endpoint, timeout=_left(self._of_endpoint, endpoint, deadline)),
            self._of_team.slot(team, timeout=_left(self._of_team, team, deadline)),
        ):
            yield


def _left(limiter: Limiter[int], key: int, deadline: float) -> float:
    """Seconds to wait. Raises `LimitReached` where waiting is in vain."""
    left = deadline - monotonic()
    if not limiter.has_room(key) and left < _SLOW_SECONDS < limiter.longest_held(key):
        raise LimitReached
    return max(left, 0)
