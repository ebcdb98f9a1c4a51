"""The plugin that says what tests cost: with what they start, and in whichever process they ran."""

from pathlib import Path

import pytest

from tests.harness.runs import pytest_run

MODULE = """
import subprocess, sys
import pytest

BUSY = "while __import__('time').process_time() < 0.5: pass"

@pytest.fixture(scope="module")
def used():
    subprocess.run([sys.executable, "-c", BUSY], check=True)

def test_idle(): pass
def test_asks_first(used): pass
def test_asks_again(used): pass
"""


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_test_costs_what_it_starts(tmp_path: Path, workers: int) -> None:
    async with pytest_run(tmp_path, MODULE, "-p", "tests.support.costs", workers=workers) as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.OK, output
    shown = [line.split() for line in output.partition("processor time of tests")[2].splitlines()]
    costs = {line[2].partition("::")[2]: float(line[0]) for line in shown if len(line) == 3 and "::" in line[2]}
    assert costs.keys() == {"test_idle", "test_asks_first", "test_asks_again"}
    if workers == 1:
        assert costs["test_asks_first"] >= 0.4 > costs["test_idle"] + costs["test_asks_again"], output
    assert sum(costs.values()) >= 0.4, output
