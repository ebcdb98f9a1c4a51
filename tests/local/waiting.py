"""Waiting for what other processes do."""

import asyncio
import time
from collections.abc import Callable

import psutil


async def eventually(condition: Callable[[], bool], timeout: float = 10) -> None:
    """Returns once the condition holds; fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        await asyncio.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process still does anything: a zombie waits only for its parent to notice."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
