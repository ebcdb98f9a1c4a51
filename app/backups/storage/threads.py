"""Threads that compress and encrypt, behind everything else that the process does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from app.core.priority import put_thread_last

_THREADS = 8
"""Some backups at once, each of which compresses one part while it encrypts another."""
_executor = ThreadPoolExecutor(_THREADS, "backup-store", put_thread_last)
P = ParamSpec("P")
R = TypeVar("R")


async def in_background(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """As `asyncio.to_thread`."""
    return await asyncio.get_running_loop().run_in_executor(_executor, lambda: function(*args, **keywords))
