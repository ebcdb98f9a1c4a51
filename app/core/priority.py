"""Processor time for what somebody waits for: what runs in the background takes what is left."""

import contextlib
import os
import sys
from pathlib import Path

_NICENESS = 10


def put_process_last(pid: int) -> None:
    """Lowers the priority of a process that was just started in a session of its own. Each session may be a group that
    gets as much processor time as any other, whatever the niceness of its processes: so the group gets a niceness
    too."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)
        if sys.platform == "linux":
            Path(f"/proc/{pid}/autogroup").write_text(str(_NICENESS))


def put_thread_last() -> None:
    """Lowers the priority of the calling thread from now on, where threads have a niceness of their own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
