"""What breaks off a dump or a restore test: its time limit, and a row that says that it is over.

Others wait for the place of a dump or a test, and a tenant can make each last as long as it likes, by a column or a
view that is slow to compute.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from app.core.background import repeating
from app.databases.records import NotWanted

_LEAST_SECONDS = 3600.0
_BYTES_A_SECOND = 2**20

TimeLimit = Callable[[int], float]
"""The time limit in seconds for a database of so many bytes."""


def time_limit(size_bytes: int) -> float:
    return _LEAST_SECONDS + size_bytes / _BYTES_A_SECOND


@asynccontextmanager
async def within(seconds: float, refusal: Callable[[str], Exception]) -> AsyncIterator[Callable[[float], None]]:
    """Ends the block after `seconds`, and raises what `refusal` makes of the reason. Yields a function that puts the
    end off by so many seconds more."""
    try:
        async with asyncio.timeout(seconds) as limit:

            def put_off(more: float) -> None:
                with suppress(RuntimeError):  # it is over
                    limit.reschedule((limit.when() or 0) + more)

            yield put_off
    except TimeoutError:
        if not limit.expired():
            raise
        reason = f"it took longer than {seconds / 60:.0f} minutes, the most for a database of its size"
        raise refusal(reason) from None


@asynccontextmanager
async def until_over(
    look: Callable[[], Awaitable[str | None]], every_seconds: float, *, backup: UUID, failure: str
) -> AsyncIterator[None]:
    """Calls `look` again and again, with a pause of `every_seconds` before each call, and ends the block with
    `NotWanted` once it returns why the work is over. A call that raises is logged as `failure`: our own database is
    away. The work goes on, and at its end the row decides."""
    block = asyncio.current_task()
    assert block is not None
    over: list[str] = []

    async def ask() -> None:
        if not over and (why := await look()) is not None:
            over.append(why)
            block.cancel()

    async with repeating(ask, every_seconds, failure=failure, backup=str(backup)):
        try:
            yield
        except asyncio.CancelledError:
            if over and block.uncancel() == 0:
                raise NotWanted(over[0]) from None
            raise
