"""Waiting for what other processes do. A test waits for a condition, never for a time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar, cast, overload

import psutil

Seen = TypeVar("Seen")
LIMIT_SECONDS = 120.0
"""Costs nothing where the condition comes to hold, and is long enough for a machine with other work."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.25
_LAST_SECONDS = 60
"""Of a day: what is counted by days and begins before them has ended by midnight."""
_PAUSE_SHARE = 0.1
"""To look takes processor time, which what is awaited needs too: what took long already may take a tenth longer."""


@overload
async def until(look: Callable[[], Awaitable[Seen]], *, timeout: float = LIMIT_SECONDS) -> Seen: ...
@overload
async def until(look: Callable[[], Seen], *, timeout: float = LIMIT_SECONDS) -> Seen: ...
async def until(look: Callable[[], Seen | Awaitable[Seen]], *, timeout: float = LIMIT_SECONDS) -> Seen:
    """The first true answer of `look`; fails after `timeout` seconds, showing the last one."""
    started = time.monotonic()
    while True:
        answer = look()
        seen = cast(Seen, await answer if inspect.isawaitable(answer) else answer)
        if seen:
            return seen
        waited = time.monotonic() - started
        assert waited < timeout, f"it never came to hold; the last look saw {seen!r}"
        await asyncio.sleep(min(max(_SHORTEST_PAUSE, waited * _PAUSE_SHARE), _LONGEST_PAUSE))


def seconds_to_midnight() -> float:
    """How long this day lasts, UTC."""
    now = datetime.now(UTC)
    return 86_400 - (now - now.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()


async def until_day_is_long() -> None:
    """Lets the day end where it is about to, for a test of what is counted by days."""
    await until(lambda: seconds_to_midnight() > _LAST_SECONDS, timeout=2 * _LAST_SECONDS)


async def ended(*tasks: asyncio.Task[None]) -> None:
    """Cancels tasks that go on for ever, until they have ended. Once may not be enough: on Python 3.11 a driver that is
    connecting may lose the cancellation, and its loop goes on."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=1)
    await asyncio.gather(*tasks, return_exceptions=True)


def is_running(pid: int) -> bool:
    """Whether the process still does anything: a zombie waits only for its parent to notice."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
