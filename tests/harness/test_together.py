"""Cases in one test: all of them run, and those that fail are named."""

from pathlib import Path

import pytest

from tests.harness.runs import pytest_run

MODULE = """
import pytest
from tests.support.together import together

RUN = []

@pytest.fixture
def base(): return 10

@together("n", [1, 2, 3, 4])
def test_numbers(base, n):
    RUN.append(n)
    if n == 3: pytest.skip("not this one")
    assert n % 2 == 0, f"case {n + base}"

@together(("a", "b"), [(1, 1), (2, 3)])
@together("c", ["x"])
async def test_pairs(a, b, c):
    assert a == b, f"case {a}{b}{c}"

def test_all_ran():
    assert RUN == [1, 2, 3, 4]
"""


async def test_all_cases_run_and_those_that_fail_are_named(tmp_path: Path) -> None:
    async with pytest_run(tmp_path, MODULE, "-o", "asyncio_mode=auto") as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "2 failed, 1 passed" in output
    assert "2 of 4 cases of test_numbers fail" in output
    assert "case 11" in output
    assert "with {'n': 1}" in output
    assert "skipped: not this one" in output
    assert "1 of 2 cases of test_pairs fail" in output
    assert "case 23x" in output
