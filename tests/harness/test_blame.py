"""Who is blamed for a connection that was left open: the test that left it, whenever it is collected."""

from pathlib import Path

import pytest

from tests.harness.runs import pytest_run

MODULE = '''
import asyncio, socket
import pytest, pytest_asyncio

class Cycle:
    """Kept by itself alone, until the collector comes."""
    def __init__(self, kept):
        self.kept, self.itself = kept, self

@pytest_asyncio.fixture
async def leaking():
    yield
    Cycle(socket.socket())

@pytest_asyncio.fixture(scope="module")
async def leaking_module():
    yield
    Cycle(socket.socket())

async def test_before(): pass
async def test_leaves_a_socket(): Cycle(socket.socket())
async def test_between(): [[] for _ in range(100_000)]
async def test_with_a_fixture_that_leaves_one(leaking): pass
async def test_after(leaking_module): [[] for _ in range(100_000)]
async def test_last(): pass
'''


async def test_what_is_left_open_is_its_own_tests(tmp_path: Path) -> None:
    async with pytest_run(tmp_path, MODULE) as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.TESTS_FAILED
    failed = [line.split("::")[1].split(" ")[0] for line in output.splitlines() if line.startswith("ERROR ")]
    # The module's fixtures end after its last test.
    assert failed == ["test_leaves_a_socket", "test_with_a_fixture_that_leaves_one", "test_last"], output
    assert "6 passed, 3 errors" in output
