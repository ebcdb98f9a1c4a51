"""Starting parts and keeping them running, with parts small enough to break in every way."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from io import FileIO, StringIO, TextIOWrapper
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from rich.console import Console

from app.local.errors import StackError
from app.local.ports import LOOPBACK, PortAllocator
from app.local.processes import ChildProcess, Command
from app.local.screen import Screen, SteadyConsole
from app.local.services import Service, start
from app.local.supervisor import Supervisor, all_of
from tests.support.ports import free_port
from tests.support.waiting import LIMIT_SECONDS, ended, is_running, until


class Part(Service):
    """Runs a shell script; ready when its log says so."""

    def __init__(self, log: Path, script: str, port: int | None = None) -> None:
        super().__init__("part", port or free_port(), log)
        self.script = script
        self.stop_seconds = 5.0

    def command(self) -> Command:
        self.log.unlink(missing_ok=True)
        script = self.script.format(port=self.port)
        argv = ("/bin/sh", "-c", script)
        return Command(argv=argv, log=self.log, environ=dict(os.environ), stop_seconds=self.stop_seconds)

    async def is_ready(self) -> bool:
        return self.log.exists() and "serving" in self.log.read_text()


SERVE = "echo serving; sleep 300"


class SilentPart(Part):
    """Runs, and never says that it serves."""

    child: ChildProcess

    async def launch(self, command: Command) -> ChildProcess:
        self.child = await super().launch(command)
        return self.child


@pytest.fixture
def output() -> StringIO:
    return StringIO()


@pytest_asyncio.fixture
async def supervisor(output: StringIO) -> AsyncIterator[Supervisor]:
    screen = Screen(Console(file=output, soft_wrap=True))
    supervisor = Supervisor(screen, PortAllocator(), marks={"MARK": "x"})
    yield supervisor
    await supervisor.stop()


async def test_a_part_that_ends_early_is_shown_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"part ended \(3\) before it was ready(?s:.*)no such luck"):
        await start(Part(tmp_path / "log", "echo no such luck; exit 3"))


async def test_a_part_that_never_serves_is_given_up_and_ended(tmp_path: Path) -> None:
    part = SilentPart(tmp_path / "log", "sleep 300")
    with pytest.raises(StackError, match="part was not ready within"):
        await start(part, timeout=0.3)
    assert not is_running(part.child.pid)


async def test_parts_are_marked_as_the_stacks(tmp_path: Path, supervisor: Supervisor) -> None:
    await supervisor.launch(Part(tmp_path / "log", SERVE), "it")
    assert psutil.Process(supervisor.processes["part"][0]).environ()["MARK"] == "x"


async def test_a_dead_part_is_started_again_and_reported(
    tmp_path: Path, supervisor: Supervisor, output: StringIO
) -> None:
    changes: list[dict[str, list[int]]] = []
    supervisor.changed = lambda: changes.append(supervisor.processes)
    await supervisor.launch(Part(tmp_path / "log", SERVE), "it")
    first = supervisor.processes["part"][0]
    os.kill(first, signal.SIGKILL)
    await until(lambda: len(changes) == 1)
    assert changes[0] == supervisor.processes != {"part": [first]}
    assert "part was killed by signal 9; starting it again\n" in output.getvalue()


def _full_disk() -> tuple[int, int | None]:
    return os.open("/dev/full", os.O_WRONLY), None


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    return writer, reader


def _terminal() -> tuple[int, int]:
    master, slave = os.openpty()
    return slave, master


@pytest.mark.parametrize("opened", [_full_disk, _pipe, _terminal])
async def test_a_dead_part_is_started_again_where_nothing_can_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], tuple[int, int | None]]
) -> None:
    """The screen is a file on a full disk, a pipe that nobody reads, or a terminal that is gone."""
    # A terminal that is gone says that it is none, unless it is said to be one.
    monkeypatch.setenv("FORCE_COLOR", "1" if opened is _terminal else "")
    monkeypatch.setenv("TERM", "xterm")
    changed = asyncio.Event()
    with _screen(*opened()) as screen:
        supervisor = Supervisor(screen, PortAllocator(), marks={})
        supervisor.changed = changed.set
        try:
            await supervisor.launch(Part(tmp_path / "log", SERVE), "it")
            running = asyncio.create_task(supervisor.run_forever())
            os.kill(supervisor.processes["part"][0], signal.SIGKILL)
            await until(lambda: changed.is_set() or running.done())
            assert not running.done()
            await ended(running)
        finally:
            await supervisor.stop()


@contextmanager
def _screen(descriptor: int, other_end: int | None) -> Iterator[Screen]:
    with TextIOWrapper(FileIO(descriptor, "w"), write_through=True) as file:
        screen = Screen(SteadyConsole(file=file))
        if other_end is not None:
            os.close(other_end)
        yield screen


async def test_a_part_that_dies_again_and_again_is_backed_off_from(
    tmp_path: Path, supervisor: Supervisor, output: StringIO
) -> None:
    part = Part(tmp_path / "log", SERVE)
    await supervisor.launch(part, "it")
    part.script = "exit 1"
    os.kill(supervisor.processes["part"][0], signal.SIGKILL)
    await until(lambda: "starting it again in 1 s" in output.getvalue())
    part.script = SERVE
    await until(lambda: "part again" in output.getvalue().splitlines()[-1])


async def test_a_port_taken_meanwhile_is_left_for_another(tmp_path: Path, supervisor: Supervisor) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        taken = other.getsockname()[1]
        part = Part(tmp_path / "log", f"test {{port}} != {taken} || exit 1; {SERVE}", port=taken)
        await supervisor.launch(part, "it")
    assert part.port != taken


async def test_a_port_that_was_taken_for_a_moment_is_tried_again(tmp_path: Path, supervisor: Supervisor) -> None:
    tries = tmp_path / "tries"
    part = Part(tmp_path / "log", f"echo >> {tries}; test $(wc -l < {tries}) -gt 1 || exit 1; {SERVE}")
    port = part.port
    await supervisor.launch(part, "it")
    assert part.port == port
    broken = Part(tmp_path / "log", f"echo >> {tries}; exit 1")
    tries.unlink()
    with pytest.raises(StackError, match="before it was ready"):
        await supervisor.launch(broken, "it")
    assert tries.read_text() == "\n\n"


async def test_another_programs_answer_is_not_the_parts_own(tmp_path: Path, supervisor: Supervisor) -> None:
    asked = tmp_path / "asked"

    class AnsweredPart(Part):
        async def is_ready(self) -> bool:
            try:
                socket.create_connection((LOOPBACK, self.port)).close()
            except ConnectionRefusedError:
                return False
            asked.touch()
            return True

    with socket.create_server((LOOPBACK, 0)) as other:
        taken = other.getsockname()[1]
        finds_out = f"test {{port}} != {taken} || {{{{ until test -e {asked}; do sleep 0.01; done; exit 1; }}}}"
        listens = f"{sys.executable} -m http.server --bind {LOOPBACK} {{port}}"
        part = AnsweredPart(tmp_path / "log", f"{finds_out}; {listens}", port=taken)
        await supervisor.launch(part, "it")
    assert part.port != taken


async def test_stopping_leaves_nothing(tmp_path: Path, supervisor: Supervisor) -> None:
    await supervisor.launch(Part(tmp_path / "log", SERVE), "it")
    pid = supervisor.processes["part"][0]
    await supervisor.stop()
    assert supervisor.processes == {}
    assert not is_running(pid)


async def test_a_part_is_given_the_time_that_it_needs_to_stop(tmp_path: Path, supervisor: Supervisor) -> None:
    log, end = tmp_path / "log", tmp_path / "end"
    script = f"trap 'sleep %d; echo clean > {end}; exit' TERM; echo serving; while :; do sleep 0.1; done"
    part = Part(log, script % 60)
    part.stop_seconds = 0.2
    await supervisor.launch(part, "it")
    await supervisor.stop()
    assert not end.exists()
    part.script = script % 1
    part.stop_seconds = LIMIT_SECONDS
    await supervisor.launch(part, "it")
    await supervisor.stop()
    assert end.read_text() == "clean\n"


async def test_the_first_failure_cancels_the_rest() -> None:
    ended = asyncio.Event()

    async def fail() -> None:
        raise StackError("it broke")

    async def last() -> None:
        try:
            await asyncio.sleep(300)
        finally:
            ended.set()

    with pytest.raises(StackError, match="it broke"):
        await all_of(fail(), last())
    assert ended.is_set()
