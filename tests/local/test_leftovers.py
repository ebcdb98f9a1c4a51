"""What an earlier stack left behind is found by its mark, and nothing else is touched."""

import asyncio
import os
from pathlib import Path

from app.local import stale_processes as leftovers
from app.local.processes import ChildProcess, Command
from tests.support.waiting import is_running

_SPAWN_AND_END = "sleep 300 & sleep 0.2"


async def test_marked_processes_are_ended_with_their_orphans(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], leftovers.MARK: str(tmp_path)}
    marked = await ChildProcess.start(Command(argv=("/bin/sleep", "300"), log=tmp_path / "1", environ=environ))
    parent = await ChildProcess.start(
        Command(argv=("/bin/sh", "-c", _SPAWN_AND_END), log=tmp_path / "2", environ=environ)
    )
    await parent.wait()
    ended = await leftovers.end(tmp_path)
    assert marked.pid in ended
    assert len(ended) == 2, "the helper of a process that has ended already counts too"
    assert await asyncio.wait_for(marked.wait(), 60) < 0
    assert not any(is_running(pid) for pid in ended)


async def test_another_homes_processes_are_left_alone(tmp_path: Path) -> None:
    environ = {leftovers.MARK: str(tmp_path / "other")}
    child = await ChildProcess.start(Command(argv=("/bin/sleep", "300"), log=tmp_path / "log", environ=environ))
    try:
        assert await leftovers.end(tmp_path) == []
        assert child.returncode is None
    finally:
        await child.kill()
