"""Finding and ending processes that outlived the stack or the server that started them, by a mark in their environment
or by their data folder.

The kernel ends a stack's children with it. This is for the rest: helpers of a killed child, and children of a stack
that was killed while it started them.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.local.errors import StackError

MARK = "_HEADWATER_STACK"
"""An environment variable of every child, inherited by its helpers: the home of their stack."""

_PATIENCE_SECONDS = 10.0


def find(home: Path) -> list[int]:
    """Ids of running processes that belong to a stack in this home. Call it only while holding the home's lock:
    otherwise they may belong to a running stack."""
    mark = f"{MARK}={home}".encode()
    return [pid for pid in _processes() if _is_ours(Path("/proc") / str(pid), mark, home)]


async def end(home: Path) -> list[int]:
    """Ends them all and returns their ids. Raises `StackError` for one that can't be ended."""
    # One may be a postmaster: asked to quit, it also ends its backends and frees its shared memory.
    return await _end(lambda: find(home), quit_seconds=_PATIENCE_SECONDS / 2)


def find_backends(data: Path) -> list[int]:
    """Ids of the running processes of the PostgreSQL server with this data folder. Its helpers leave the
    postmaster's process group, outlive its SIGKILL (by minutes during a checkpoint), and keep a new server from
    starting."""
    folder = data.resolve()
    return [pid for pid in _processes() if _is_postgres_in(Path("/proc") / str(pid), folder)]


async def end_backends(data: Path) -> list[int]:
    """Ends them all and returns their ids. Raises `StackError` for one that can't be ended."""
    return await _end(lambda: find_backends(data), quit_seconds=0)


async def _end(find_remaining: Callable[[], list[int]], *, quit_seconds: float) -> list[int]:
    found = remaining = find_remaining()
    started = time.monotonic()
    while remaining:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                quit_first = _program(pid) == "postgres" and time.monotonic() < started + quit_seconds
                os.kill(pid, signal.SIGQUIT if quit_first else signal.SIGKILL)
        await asyncio.sleep(0.1)
        remaining = find_remaining()
        if remaining and time.monotonic() > started + _PATIENCE_SECONDS:
            raise StackError(f"processes that were left behind don't end: {remaining}")
    return found


def _processes() -> Iterator[int]:
    proc = Path("/proc")
    if proc.is_dir():
        yield from (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def _is_ours(process: Path, mark: bytes, home: Path) -> bool:
    if int(process.name) == os.getpid():
        return False
    try:
        if mark in (process / "environ").read_bytes().split(b"\0"):
            return True
    except OSError:  # it ended meanwhile, or is another user's
        return False
    # PostgreSQL's backends overwrite their environment with their title.
    return _is_postgres_in(process, home)


def _is_postgres_in(process: Path, folder: Path) -> bool:
    """All processes of a server run in its data folder. An operator's shell may be there too: it is left alone."""
    try:
        is_inside = (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False
    return is_inside and _program(int(process.name)) == "postgres"


def _program(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "exe").readlink().name
    except OSError:
        return ""
