"""What a run of the tests shows of itself."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.harness.runs import pytest_run
from tests.support.waiting import LIMIT_SECONDS

MODULE = """
import time

def test_that_fails(): assert 1 + 1 == 3
def test_that_never_ends(): time.sleep(300)
"""


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_failure_is_named_before_the_end(tmp_path: Path, workers: int) -> None:
    async with pytest_run(tmp_path, MODULE, workers=workers) as run:
        assert run.process.stdout is not None
        shown = b""
        while b"failed: " not in shown:
            line = await asyncio.wait_for(run.process.stdout.readline(), LIMIT_SECONDS)
            assert line, shown
            shown += line
        assert b"failed: test_module.py::test_that_fails (call): assert (1 + 1) == 3" in shown
        run.press_ctrl_c()
        _, output = await run.end()
    kept = (tmp_path / "failures.txt").read_text()
    assert kept.startswith("test_module.py::test_that_fails (call)\n")
    assert "assert (1 + 1) == 3" in kept, "who looks at what the run has left needs the message too"
    assert re.search(r"^processor time: \d+ s in \d+ s, \d+% of \d+ cores$", output, re.MULTILINE)
