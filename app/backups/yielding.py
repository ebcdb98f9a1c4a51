"""A scheduled backup gives way to what somebody waits for on the same host.

Measured by the steps that this region's worker has under way there: a host is busy while it makes, opens or closes
databases, which is when a dump would be felt most. How busy the tenants themselves are, an administrator's statements
would have to find out, at a cost of their own; the dump reads no faster than the store takes it, with one session.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from time import monotonic

_LOOK_SECONDS = 0.02


async def giving_way(chunks: AsyncIterator[bytes], is_busy: Callable[[], bool]) -> AsyncGenerator[bytes]:
    """The chunks, with a pause after each while the host is busy, as long as the chunk took at most: so a host that is
    always busy makes a dump take twice its time, not for ever."""
    began = monotonic()
    try:
        async for chunk in chunks:
            yield chunk
            for _ in range(int((monotonic() - began) / _LOOK_SECONDS)):
                if not is_busy():
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            began = monotonic()
    finally:
        if isinstance(chunks, AsyncGenerator):
            with contextlib.suppress(Exception):
                await chunks.aclose()
