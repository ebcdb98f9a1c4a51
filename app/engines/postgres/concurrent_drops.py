"""Work on a batch of a tenant's objects, which it may drop meanwhile."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import asyncpg

Done = TypeVar("Done")
_MAX_TIMES = 5
_GONE = (
    asyncpg.UndefinedTableError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedObjectError,
)


async def retrying_drops(batch: Callable[[], Awaitable[Done]]) -> Done:
    """Runs the batch, again where something was dropped between our look and our statement. Raises what the last try
    raised."""
    for _ in range(_MAX_TIMES - 1):
        with suppress(*_GONE):
            return await batch()
    return await batch()
