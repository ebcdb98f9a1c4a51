"""Work in the background that many ask for at about the same time, and that is done once for all of them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)


class Debouncer:
    """Makes nobody wait. What the work raises is logged as `lost`: it has to be a hint, without which all goes on."""

    def __init__(self, seconds: float, work: Callable[[], Awaitable[None]], *, lost: str) -> None:
        """Whoever asks within `seconds` of the first shares one run."""
        self._seconds = seconds
        self._work = work
        self._lost = lost
        self._wanted = False
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def soon(self) -> None:
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Does at once what is left to do."""
        self._closing.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._wanted:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._seconds)
            self._wanted = False
            try:
                await self._work()
            except Exception as fault:
                log.warning(self._lost, reason=str(fault) or type(fault).__name__)
