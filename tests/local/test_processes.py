"""Children: nothing of one outlives its stop, its parent's death, or a failure to start."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from app.local.errors import StackError
from app.local.processes import ChildProcess, Command, run_to_end
from app.local.service_user import service_user
from tests.support.waiting import LIMIT_SECONDS, is_running, until

_SPAWN_HELPER = "import subprocess, time; print(subprocess.Popen(['sleep', '300']).pid, flush=True); time.sleep(300)"
_START_AND_SLEEP = """
import asyncio, sys
from pathlib import Path
from app.local.processes import ChildProcess, Command

async def main():
    child = await ChildProcess.start(Command(argv=tuple(sys.argv[2:]), log=Path(sys.argv[1])))
    print(child.pid, flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_stopping_ends_the_whole_group(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = await ChildProcess.start(Command(argv=(sys.executable, "-c", _SPAWN_HELPER), log=log))
    await until(lambda: log.read_text().endswith("\n"))
    helper = int(log.read_text())
    assert psutil.pid_exists(helper)
    await child.stop(timeout=LIMIT_SECONDS)
    assert child.returncode == -signal.SIGTERM
    await until(lambda: not is_running(helper))


async def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"
    )
    child = await ChildProcess.start(Command(argv=(sys.executable, "-c", stubborn), log=log))
    await until(lambda: log.read_text() != "")
    await child.stop(timeout=0.2)
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("as_other_user", [False, True])
async def test_a_child_dies_with_a_killed_parent(tmp_path: Path, as_other_user: bool) -> None:
    if as_other_user and os.geteuid() != 0:
        pytest.skip("only root runs children as another user")
    prefix = service_user(tmp_path, Path("/bin/sleep"), death_signal="KILL").prefix if as_other_user else ()
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _START_AND_SLEEP,
        str(tmp_path / "log"),
        *prefix,
        "/bin/sleep",
        "300",
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    child = psutil.Process(pid)
    if as_other_user:
        await until(lambda: child.uids().real != 0)
    assert child.is_running()
    parent.kill()
    await parent.communicate()
    await until(lambda: not is_running(pid))


async def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    command = Command(argv=("/bin/sh", "-c", "echo what is wrong; exit 3"), log=tmp_path / "log")
    with pytest.raises(StackError, match=r"failed \(3\)\n +what is wrong"):
        await run_to_end(command, timeout=LIMIT_SECONDS)


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="/nonexistent/program: No such file"):
        await run_to_end(Command(argv=("/nonexistent/program",), log=tmp_path / "log"), timeout=LIMIT_SECONDS)


async def test_a_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(StackError, match=r"can't write .*/log: Is a directory"):
        await run_to_end(Command(argv=("/bin/true",), log=tmp_path / "log"), timeout=LIMIT_SECONDS)


async def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="took longer"):
        await run_to_end(Command(argv=("/bin/sleep", "300"), log=tmp_path / "log"), timeout=0.1)


async def test_a_command_that_is_broken_off_is_asked_to_stop(tmp_path: Path) -> None:
    """An installer that is killed leaves its records broken."""
    log = tmp_path / "log"
    script = "trap 'echo cleaned up; exit' TERM; echo begun; sleep 300 & wait"
    command = Command(argv=("/bin/sh", "-c", script), log=log, stop_signal=signal.SIGTERM, stop_seconds=LIMIT_SECONDS)
    running = asyncio.create_task(run_to_end(command, timeout=LIMIT_SECONDS))
    await until(lambda: log.exists() and "begun" in log.read_text())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "cleaned up" in log.read_text()


async def test_the_log_and_the_environment_are_the_childs_alone(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "env.log"
    await run_to_end(Command(argv=("/usr/bin/env",), log=log, environ={"ONLY": "this"}), timeout=LIMIT_SECONDS)
    assert log.read_text() == "ONLY=this\n"
