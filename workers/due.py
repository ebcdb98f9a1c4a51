"""Working off what has become due: the rows say what, so nothing is lost while no worker runs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from uuid import UUID

import structlog

_BATCH = 50
_MOST = 1000
"""The most that one look does; the next one has the others."""

log = structlog.get_logger(__name__)


async def repeat(look: Callable[[], Awaitable[None]], seconds: float, *, failure: str) -> None:
    """Calls `look` with this pause after each, until cancelled. A look that raises is logged as `failure`: our own
    database may be away, and what is due stays due."""
    while True:
        try:
            await look()
        except Exception as fault:
            log.warning(failure, reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(seconds)


class FindDue(Protocol):
    async def __call__(self, most: int, /, *, without: list[UUID]) -> list[UUID]:
        """Databases on which something is due, except those in `without`."""


async def work_off(find: FindDue, work: Callable[[UUID], Awaitable[Any]], *, failure: str) -> None:
    """Calls `work` once for each database that `find` names. A call that fails is logged as `failure`, is left to the
    next look, and doesn't hold up the others."""
    seen: list[UUID] = []
    while len(seen) < _MOST and (due := await find(_BATCH, without=seen)):
        seen += due
        for database in due:
            try:
                await work(database)
            except Exception as fault:
                log.warning(failure, database=str(database), reason=str(fault) or type(fault).__name__)
