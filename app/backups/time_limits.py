"""How long a dump or a restore test may take: others wait for its place, and a tenant can make each last as long as it
likes, by a column or a view that is slow to compute."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_LEAST_SECONDS = 3600.0
_BYTES_A_SECOND = 2**20

TimeLimit = Callable[[int], float]
"""In seconds, for a database of so many bytes."""


def time_limit(size_bytes: int) -> float:
    return _LEAST_SECONDS + size_bytes / _BYTES_A_SECOND


@asynccontextmanager
async def within(seconds: float, refusal: Callable[[str], Exception]) -> AsyncIterator[None]:
    """Ends the block after that time, and raises what `refusal` makes of the reason."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        reason = f"it took longer than {seconds / 60:.0f} minutes, the most for a database of its size"
        raise refusal(reason) from None
