"""What the C library keeps of the memory that a process has freed."""

import ctypes
import os
import sys

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""
_ARENAS = 2


def share_arenas() -> None:
    """Limits the arenas of glibc, where that is the C library. Call it before the first thread is started. By default
    glibc gives threads up to eight arenas for each core, and buffers that one thread fills and another frees stay in
    each of them: of a backup's buffers, more than ever were in use at once. `MALLOC_ARENA_MAX` in the environment
    counts in place of this."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries have none
        if mallopt is not None:
            mallopt(_ARENA_MAX, _ARENAS)
