"""An embedded stack for one benchmark, in a temporary folder."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.local import stack_file
from app.local.ports import free_port
from app.local.stack_file import StackFile

_START_SECONDS = 120
_STOP_SECONDS = 120
"""A server with hundreds of new databases has to sync all their files."""
_ROOM = 10_000
"""Databases on each host: none is full before the measurement has ended."""
_ROOT = Path(__file__).parents[1]


@contextmanager
def running_stack(pool_size: int = 0, home: Path | None = None) -> Iterator[StackFile]:
    """A stack with default settings and warm pools of this size, in a new folder `home` where one is named. Raises
    `RuntimeError` with its output when it doesn't start."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        home, output = home or Path(folder) / "home", Path(folder) / "output"
        # Of its own, or another stack that starts at the same time could have the usual one.
        port = str(free_port())
        settings = {
            "HEADWATER_HOME": str(home),
            "HEADWATER_POOL_SIZE": str(pool_size),
            "HEADWATER_API_PORT": port,
            "HEADWATER_HOST_CAPACITY": str(_ROOM),
        }
        with output.open("wb") as said:
            stack = subprocess.Popen(
                [sys.executable, "-m", "app.local"], cwd=_ROOT, env=os.environ | settings, stdout=said, stderr=said
            )
            try:
                yield _ready(stack, home, output)
            finally:
                stack.terminate()
                stack.wait(_STOP_SECONDS)


def _ready(stack: subprocess.Popen[bytes], home: Path, output: Path) -> StackFile:
    deadline = time.monotonic() + _START_SECONDS
    while (found := stack_file.read(home)) is None:
        if stack.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the stack didn't start:\n{output.read_text()}")
        time.sleep(0.1)
    return found
