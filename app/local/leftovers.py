"""Processes that outlived the stack that started them: found by a mark in their environment, and ended.

The kernel ends a stack's children with it. This is for the rest: helpers of a child that was killed, and
children of a stack that was killed in the moment of starting them.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
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
    found = find(home)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    remaining = found
    while remaining:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                # A killed postmaster would leave its backends, and they the shared memory.
                quit_first = _program(pid) == "postgres" and time.monotonic() < deadline - _PATIENCE_SECONDS / 2
                os.kill(pid, signal.SIGQUIT if quit_first else signal.SIGKILL)
        await asyncio.sleep(0.1)
        remaining = find(home)
        if remaining and time.monotonic() > deadline:
            raise StackError(f"processes of an earlier stack don't end: {remaining}")
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
        # PostgreSQL's backends write their title over the environment, but all sit in the data folder.
        in_home = (process / "cwd").readlink().is_relative_to(home)
        return in_home and _program(int(process.name)) == "postgres"
    except OSError:  # it ended meanwhile, or is another user's
        return False


def _program(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "exe").readlink().name
    except OSError:
        return ""
