"""A database server that was killed comes back: nothing of it stands in the way, and it may take its time."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psutil
import pytest
import pytest_asyncio

from app.local import stale_processes as leftovers
from app.local.mysql import MysqlService
from app.local.mysql_data import Flavour, detect_flavour
from app.local.postgres import PostgresService, find_programs
from app.local.processes import ChildProcess, Command
from app.local.services import Say, start
from tests.servers import end, machine_mysqld
from tests.support.ports import free_port
from tests.support.waiting import is_running

_WAITS = "while test -e {hold}; do sleep 0.1; done"
_SLOW_SERVER = f"""#!/bin/sh
{_WAITS}
exec {{program}} "$@"
"""
_TIMEOUT = 9.0
"""Of a start, which looks every third of that whether the server recovers."""


def _data(folder: Path) -> Path:
    return folder / "pg" / "data"


def _postgres(folder: Path, **settings: str) -> PostgresService:
    log = folder / "pg.log"
    programs = find_programs(None)
    return PostgresService(
        "postgres", folder=folder / "pg", port=free_port(), log=log, programs=programs, durable=False, settings=settings
    )


def _mysql(folder: Path, program: Path, flavour: Flavour) -> MysqlService:
    log = folder / "mysql.log"
    return MysqlService(
        "mysql", folder=folder / "mysql", port=free_port(), log=log, program=program, flavour=flavour, durable=False
    )


def _until_overdue(hold: Path, said: list[str]) -> Say:
    """Collects what a start says, and lets the server go on when that has taken longer than a start may."""
    hold.touch()

    def say(line: str) -> None:
        said.append(line)
        if int(line.rpartition("(")[2].removesuffix(" s)")) > _TIMEOUT:
            hold.unlink(missing_ok=True)

    return say


def _stop_a_helper(child: ChildProcess) -> int:
    """One that doesn't notice the postmaster's end, as in the middle of a long sync."""
    helper = psutil.Process(child.pid).children()[0]
    helper.suspend()
    return helper.pid


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[PostgresService]:
    service = _postgres(tmp_path)
    await service.prepare()
    yield service
    await leftovers.end_backends(_data(tmp_path))


async def test_a_server_starts_beside_survivors_of_its_killed_predecessor(
    server: PostgresService, tmp_path: Path
) -> None:
    first = await start(server)
    survivor = _stop_a_helper(first)
    os.kill(first.pid, signal.SIGKILL)
    await first.wait()
    assert is_running(survivor)
    second = await start(server)
    assert not is_running(survivor)
    await second.stop()


async def test_a_killed_server_leaves_no_helper(server: PostgresService) -> None:
    child = await start(server)
    helper = _stop_a_helper(child)
    await child.kill()
    assert not is_running(helper)
    # Its shared memory goes with its next start.
    await end(server, await start(server))


async def test_others_in_the_data_folder_are_left_alone(server: PostgresService, tmp_path: Path) -> None:
    log = tmp_path / "log"
    shell = await ChildProcess.start(Command(argv=("/bin/sleep", "300"), log=log, folder=_data(tmp_path)))
    try:
        assert await leftovers.end_backends(_data(tmp_path)) == []
        assert shell.returncode is None
    finally:
        await shell.kill()


async def test_a_server_that_recovers_for_long_is_waited_for(server: PostgresService, tmp_path: Path) -> None:
    # It replays what an archive gives it: this one takes its time to say that there is nothing.
    (_data(tmp_path) / "recovery.signal").touch()
    hold = tmp_path / "hold"
    said: list[str] = []
    slow = _postgres(tmp_path, restore_command=f"{_WAITS.format(hold=hold)}; false")
    child = await start(slow, timeout=_TIMEOUT, say=_until_overdue(hold, said))
    assert any("postgres is still recovering its data" in line for line in said)
    await child.stop()


async def test_a_mysql_server_that_does_not_listen_yet_is_waited_for(tmp_path: Path) -> None:
    program = machine_mysqld()
    await _mysql(tmp_path, program, await detect_flavour(program)).prepare()
    script, hold = tmp_path / "mysqld", tmp_path / "hold"
    script.write_text(_SLOW_SERVER.format(program=program, hold=hold))
    script.chmod(0o755)
    slow, said = _mysql(tmp_path, script, await detect_flavour(program)), list[str]()
    child = await start(slow, timeout=_TIMEOUT, say=_until_overdue(hold, said))
    assert any("mysql is still recovering its data" in line for line in said)
    await child.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems sync file by file")
async def test_a_recovering_server_syncs_all_files_at_once(server: PostgresService) -> None:
    child = await start(server)
    connection = await asyncpg.connect(server.dsn())
    method = await connection.fetchval("SHOW recovery_init_sync_method")
    await connection.close()
    await child.stop()
    assert method == "syncfs"
