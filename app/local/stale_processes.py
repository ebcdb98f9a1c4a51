"""Processes that outlived what started them, a stack or one server: found by a mark in their environment or
by their data folder, and ended.

The kernel ends a stack's children with it. This is for the rest: helpers of a child that was killed, and
children of a stack that was killed in the moment of starting them.
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
"""Environment variable of every child, inherited by its helpers: the home of the stack they belong to."""

_PATIENCE_SECONDS = 10.0


def find(home: Path) -> list[int]:
    """Ids of running processes that belong to a stack in this home. Ask only while holding the home's lock:
    else they may belong to a stack that is alive."""
    mark = f"{MARK}={home}".encode()
    return [pid for pid in _processes() if _is_ours(Path("/proc") / str(pid), mark, home)]


async def end(home: Path) -> list[int]:
    """Ends them all and returns who they were. Raises `StackError` for one that can't be ended."""
    # A postmaster may be among them: asked to quit, it takes its backends and its shared memory along.
    return await _end(lambda: find(home), quit_seconds=_PATIENCE_SECONDS / 2)


def find_backends(data: Path) -> list[int]:
    """Ids of the running processes of the PostgreSQL server with this data folder. Its helpers leave the
    process group of the postmaster, outlive its SIGKILL (by minutes in the middle of a checkpoint), and keep a
    new server from starting on the folder."""
    folder = data.resolve()
    return [pid for pid in _processes() if _is_postgres_in(Path("/proc") / str(pid), folder)]


async def end_backends(data: Path) -> list[int]:
    """Ends them all and returns who they were. Raises `StackError` for one that can't be ended."""
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
    # PostgreSQL's backends write their title over the environment.
    return _is_postgres_in(process, home)


def _is_postgres_in(process: Path, folder: Path) -> bool:
    """All processes of a server sit in its data folder. So may an operator's shell: it is left alone."""
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
