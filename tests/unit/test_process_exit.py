"""How a process exits whose output can't be written."""

import os
import subprocess
import sys

import pytest

LOST = """
import sys
from app.core.process_exit import run_and_exit
run_and_exit(lambda: print("lost", end="", file=sys.{stream}))
"""


@pytest.mark.parametrize(("stream", "status"), [("stdout", 1), ("stderr", 0)])
def test_a_stream_that_nobody_reads(stream: str, status: int) -> None:
    """Output that is lost is a failure; what is said beside it is none. -E: or Python may be told to buffer nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as lost:
        ended = subprocess.run(
            [sys.executable, "-E", "-c", LOST.format(stream=stream)],
            stdout=lost if stream == "stdout" else subprocess.PIPE,
            stderr=lost if stream == "stderr" else subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == status
    assert not ended.stdout
    assert not ended.stderr
