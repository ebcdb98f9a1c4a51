"""A run of the tests that is broken off leaves no process behind, in one process and in two, whatever it was doing."""

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.harness.runs import Run, pytest_run
from tests.support.waiting import until

SERVER = """
import asyncio, os, subprocess
from pathlib import Path
import pytest, pytest_asyncio
from tests import servers

{detached}
@pytest_asyncio.fixture(scope="session")
async def server(tmp_path_factory, detached):
    folder = tmp_path_factory.mktemp("server")
    async with servers.postgres(folder) as server:
        Path(__file__).with_name(f"serves-{{os.getpid()}}").touch()
        yield server

@pytest.mark.parametrize("number", range(4))
async def test_that_never_ends(server, number):
    await asyncio.sleep(300)
"""
NOTHING_DETACHED = """
@pytest.fixture(scope="session")
def detached():
    pass
"""
DETACHED = """
@pytest.fixture(scope="session")
def detached():
    subprocess.run(["sh", "-c", "setsid sleep 300 &"])
"""
"""A process in a session of its own, which nothing binds to anybody's life."""


def starts(run: Run) -> object:
    return [one for one in processes_in(run.folder) if "initdb" in one or "postgres" in one]


def serves(run: Run) -> object:
    """In each process that runs tests."""
    return len(list(run.folder.glob("serves-*"))) == run.workers


@pytest.mark.parametrize(("moment", "workers"), [(serves, 1), (starts, 2), (serves, 2)])
async def test_ctrl_c(tmp_path: Path, moment: Callable[[Run], object], workers: int) -> None:
    async with pytest_run(tmp_path, SERVER.format(detached=DETACHED), workers=workers) as run:
        await until(lambda: moment(run))
        run.press_ctrl_c()
        code, output = await run.end()
    assert code == pytest.ExitCode.INTERRUPTED, output
    assert processes_in(tmp_path) == []


async def test_ctrl_c_twice(tmp_path: Path) -> None:
    async with pytest_run(tmp_path, SERVER.format(detached=DETACHED), workers=2) as run:
        await until(lambda: serves(run))
        run.press_ctrl_c()
        run.press_ctrl_c()
        await run.end()
    assert processes_in(tmp_path) == []


@pytest.mark.parametrize(("signal", "workers"), [("terminate", 1), ("kill", 2)])
async def test_pytest_is_ended(tmp_path: Path, signal: str, workers: int) -> None:
    async with pytest_run(tmp_path, SERVER.format(detached=DETACHED), workers=workers) as run:
        await until(lambda: serves(run))
        getattr(run.pytest, signal)()
        await run.end()
    assert processes_in(tmp_path) == []


async def test_the_supervisor_is_terminated(tmp_path: Path) -> None:
    async with pytest_run(tmp_path, SERVER.format(detached=DETACHED)) as run:
        await until(lambda: starts(run))
        run.process.terminate()
        await run.end()
    assert processes_in(tmp_path) == []


async def test_the_supervisor_is_killed(tmp_path: Path) -> None:
    """The kernel ends pytest with it, and the servers with pytest."""
    async with pytest_run(tmp_path, SERVER.format(detached=NOTHING_DETACHED), workers=2) as run:
        await until(lambda: serves(run))
        run.process.kill()
        await until(lambda: not processes_in(tmp_path))


def processes_in(folder: Path) -> list[str]:
    """The command lines of all that run in the folder or work on it, by whoever's child they are."""
    # psutil would open five files of each process of the machine, twenty times a second.
    lines = [_command_line(Path(f"/proc/{pid}"), str(folder)) for pid in psutil.pids()]
    return [line for line in lines if line]


def _command_line(process: Path, folder: str) -> str:
    """Empty of one that is elsewhere, or that has ended: a zombie has neither arguments nor a folder."""
    try:
        arguments = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        is_in = folder in arguments or os.readlink(process / "cwd").startswith(folder)
    except OSError:
        return ""
    return arguments if is_in else ""
