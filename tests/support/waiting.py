"""Waiting for what other processes do."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Seen = TypeVar("Seen")


async def until(look: Callable[[], Awaitable[Seen]], *, timeout: float = 20) -> Seen:
    """The first true answer of `look`; fails after `timeout` seconds, showing the last one."""
    deadline = time.monotonic() + timeout
    while not (seen := await look()):
        assert time.monotonic() < deadline, f"it never came to hold; the last look saw {seen!r}"
        await asyncio.sleep(0.05)
    return seen
