"""Waiting for what other processes do. A test waits for a condition, never for a time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

import psutil

Seen = TypeVar("Seen")
LIMIT_SECONDS = 60.0
"""Costs nothing where the condition comes to hold, and is long enough for a machine with other work."""


@overload
async def until(look: Callable[[], Awaitable[Seen]], *, timeout: float = LIMIT_SECONDS) -> Seen: ...
@overload
async def until(look: Callable[[], Seen], *, timeout: float = LIMIT_SECONDS) -> Seen: ...
async def until(look: Callable[[], Seen | Awaitable[Seen]], *, timeout: float = LIMIT_SECONDS) -> Seen:
    """The first true answer of `look`; fails after `timeout` seconds, showing the last one."""
    deadline = time.monotonic() + timeout
    while True:
        answer = look()
        seen = cast(Seen, await answer if inspect.isawaitable(answer) else answer)
        if seen:
            return seen
        assert time.monotonic() < deadline, f"it never came to hold; the last look saw {seen!r}"
        await asyncio.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process still does anything: a zombie waits only for its parent to notice."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
