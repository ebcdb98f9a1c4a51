"""Background work that several callers request at about the same time, and that runs once for all of them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextvars import Context

import structlog

log = structlog.get_logger(__name__)


class Debouncer:
    """Runs the work in the background. An exception is logged as the event `lost`, so nothing may depend on the
    work: it has to be a hint."""

    def __init__(self, seconds: float, work: Callable[[], Awaitable[None]], *, lost: str) -> None:
        """Requests within `seconds` of the first one share a run."""
        self._seconds = seconds
        self._work = work
        self._lost = lost
        self._requested = False
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def schedule(self) -> None:
        self._requested = True
        if self._task is None or self._task.done():
            # In nobody's name: it is for all who ask for it until it runs.
            self._task = asyncio.create_task(self._run(), context=Context())

    async def close(self) -> None:
        """Runs immediately what is still requested, and waits for it."""
        self._closing.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._requested:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._closing.wait()
            self._requested = False
            try:
                await self._work()
            except Exception as fault:
                log.warning(self._lost, reason=str(fault) or type(fault).__name__)
