"""What the C library keeps of freed memory."""

import subprocess
import sys

import pytest

_THREADS = """
import ctypes, threading
from app.core.memory import share_arenas

{first}
here = threading.Barrier(16)

def work():
    held = bytearray(100_000)
    here.wait()

threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_threads_share_what_was_freed() -> None:
    assert arenas("share_arenas()") <= 2 < arenas("")


def arenas(first: str) -> int:
    command = (sys.executable, "-c", _THREADS.format(first=first))
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return ended.stderr.count("Arena ")
