"""Batches of a tenant's objects, which it may drop at the same time."""

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
    """Runs the batch again when something was dropped between our query and our statement. Raises the last attempt's
    error."""
    for _ in range(_MAX_TIMES - 1):
        with suppress(*_GONE):
            return await batch()
    return await batch()
