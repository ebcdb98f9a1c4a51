"""What hangs is named, shown and ended, and neither a test nor a run hangs for ever."""

from pathlib import Path

import pytest

from tests.harness.runs import pytest_run
from tests.harness.test_supervision import processes_in

PREFACE = """
import asyncio, ctypes, threading, time
import pytest, pytest_asyncio

def test_before(): pass
"""
AWAITS = """
async def inner(): await asyncio.get_running_loop().create_future()
@pytest.mark.soak
async def test_hangs():
    print("as far as here")
    await inner()
"""
SLEEPS = """
@pytest.mark.soak
def test_hangs():
    print("as far as here")
    inner()
def inner(): time.sleep(300)
"""
KEEPS_THE_LOCK = """
@pytest.mark.soak
def test_hangs(): inner()
def inner(): ctypes.PyDLL(None).sleep(300)
"""
TEARS_DOWN = """
async def inner(): await asyncio.get_running_loop().create_future()
@pytest_asyncio.fixture
async def endless():
    yield
    print("as far as here")
    await inner()
@pytest.mark.soak
def test_hangs(endless): pass
"""
TEARS_DOWN_THE_SESSION = TEARS_DOWN.replace("fixture", "fixture(scope='session', loop_scope='session')")
AFTER = """
async def test_after(): pass
"""
MODULES = {
    "awaits": PREFACE + AWAITS + AFTER,
    "sleeps": PREFACE + SLEEPS + AFTER,
    "keeps the interpreter's lock": PREFACE + KEEPS_THE_LOCK + AFTER,
    "tears a fixture down": PREFACE + TEARS_DOWN + AFTER,
}
THREAD_AT_THE_END = (
    PREFACE
    + """
def inner(): time.sleep(300)
def test_last(): threading.Thread(target=inner).start()
"""
)
HOOK_AT_THE_END = (
    PREFACE
    + """
def inner(): time.sleep(300)
class Plugin:
    def pytest_sessionfinish(self): inner()
def test_last(request): request.config.pluginmanager.register(Plugin())
"""
)
NOTHING_REPORTED = (
    PREFACE
    + """
async def inner(): await asyncio.get_running_loop().create_future()
async def test_fails(): assert not "what it is"
async def test_hangs(): await inner()
"""
)
IN_TWO = ("-p", "tests.support.distribution")
SHORT = ("-m", "", "-o", "soak_limit=2")
"""The limit of the test that hangs. On a crowded machine any other may take that long."""
LONGER = ("-o", "test_limit=20")
"""Of the end of a session, and of keeping the interpreter's lock."""


def limits(hang: str) -> tuple[str, ...]:
    return (*SHORT, *LONGER) if KEEPS_THE_LOCK in MODULES[hang] else SHORT


@pytest.mark.parametrize("hang", MODULES)
async def test_in_one_process(tmp_path: Path, hang: str) -> None:
    async with pytest_run(tmp_path, MODULES[hang], *limits(hang)) as run:
        code, output = await run.end()
    assert "in inner" in output, output
    assert "in test_hangs" in output or "test_module.py::test_hangs took longer than 2 s" in output
    assert code != pytest.ExitCode.OK
    if "print(" in MODULES[hang]:
        assert "as far as here" in output
    assert processes_in(tmp_path) == []


@pytest.mark.parametrize("hang", MODULES)
async def test_in_two_processes_the_rest_is_run(tmp_path: Path, hang: str) -> None:
    async with pytest_run(tmp_path, MODULES[hang], *limits(hang), *IN_TWO, workers=2) as run:
        code, output = await run.end()
    assert "in inner" in output, output
    assert "crashed while running 'test_module.py::test_hangs'" in output
    assert "1 failed" in output
    # A test whose fixture is torn down without end has passed before.
    assert f"{2 + ('yield' in MODULES[hang])} passed" in output
    assert code == pytest.ExitCode.TESTS_FAILED
    assert processes_in(tmp_path) == []


async def test_the_new_process_runs_what_is_left_of_several_files(tmp_path: Path) -> None:
    """One test of each, when no other process takes any more."""
    (tmp_path / "test_three.py").write_text("".join(f"def test_{number}(): pass\n" for number in range(3)))
    (tmp_path / "test_z.py").write_text("def test_one(): pass\n")
    source = MODULES["awaits"].replace("test_before", "before")
    async with pytest_run(tmp_path, source, *SHORT, *IN_TWO, workers=2) as run:
        code, output = await run.end()
    assert "1 failed, 5 passed" in output
    assert code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_fixture_of_the_session(tmp_path: Path, workers: int) -> None:
    source = PREFACE + TEARS_DOWN_THE_SESSION
    async with pytest_run(tmp_path, source, *SHORT, *IN_TWO, workers=workers) as run:
        code, output = await run.end()
    assert "test_module.py::test_hangs took longer than 2 s" in output
    assert "in inner" in output
    assert code != pytest.ExitCode.OK


@pytest.mark.parametrize(("source", "workers"), [(THREAD_AT_THE_END, 1), (HOOK_AT_THE_END, 1), (HOOK_AT_THE_END, 2)])
async def test_the_end_of_the_session(tmp_path: Path, source: str, workers: int) -> None:
    async with pytest_run(tmp_path, source, *LONGER, *IN_TWO, workers=workers) as run:
        code, output = await run.end()
    assert "the end of the session took longer than 20 s" in output
    assert "in inner" in output
    assert code != pytest.ExitCode.OK
    assert processes_in(tmp_path) == []


async def test_no_report_comes(tmp_path: Path) -> None:
    """The processes that run tests have a limit too long to be of use."""
    # The margin stays, for the end of the run, and no test is marked.
    silence = ("-m", "", "-o", "soak_limit=-100")
    async with pytest_run(tmp_path, NOTHING_REPORTED, *silence, *IN_TWO, workers=2) as run:
        code, output = await run.end()
    assert "no report came for 20 s" in output
    assert "is at test_module.py::test_hangs, and 0 after it" in output
    assert "in _watch" in output, "where each process is, by its stacks"
    assert "FAILED test_module.py::test_fails" in output
    assert code == pytest.ExitCode.INTERRUPTED
    assert processes_in(tmp_path) == []


async def test_a_limit_of_its_own_for_longer_forms(tmp_path: Path) -> None:
    source = PREFACE + "@pytest.mark.soak\nasync def test_long(): await asyncio.sleep(17)\n"
    async with pytest_run(tmp_path, source, "-o", "test_limit=15", "-m", "") as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.OK, output
