"""A plugin: `--processes=5` divides the tests between so many processes, which are forked once all tests are collected.

To collect takes each process ten seconds of processor time; a fork takes none, and has the same tests for certain. The
process that forks runs no test: it hands out scopes (`tests.support.distribution`), reports, and forks another process
in place of one that died. `tests.support.parallel_process` is what each of them does.
"""

import contextlib
import os
import signal
import warnings
from collections.abc import Generator, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

import pytest

from tests.support.distribution import Scopes
from tests.support.parallel_process import Finished, Next, Report, Started, Warned, run_forked
from tests.support.watchdog import STATES, WATCHDOG

_NAME = "headwater-parallel"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="how many processes run the tests, each with its servers")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("processes") > 1:
        parallel = Parallel(config)
        config.pluginmanager.register(parallel, _NAME)
        config.stash[STATES] = parallel.states
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            # Tests of several files are under way at any time.
            terminal.showfspath = False


class Process:
    """One that runs tests, as seen by the one that forked it."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.connection = connection
        self.alive = os.pidfd_open(pid)
        """Can be read once it has ended (pidfd_open(2))."""
        self.assigned: list[int] = []
        """Tests that it has not finished, by their places; it runs the first."""
        self.has_service = False
        """Whether it has started the service that tests share."""

    def messages(self) -> Iterator[object]:
        """All that it has sent."""
        with contextlib.suppress(EOFError, ConnectionError):
            while self.connection.poll():
                yield self.connection.recv()

    def interrupt(self) -> None:
        """As Ctrl-C does, which does not come to it by itself: it is in a process group of its own."""
        os.kill(self.pid, signal.SIGINT)

    def close(self) -> int:
        """Of one that has ended: its exit code."""
        os.close(self.alive)
        self.connection.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Parallel:
    """In the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._processes: list[Process] = []
        self._forked = 0
        self._has_lost_one = False
        self._is_broken_off = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        self._scopes = Scopes(session.items)
        # Made once: each process has a folder below.
        self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for _ in range(min(self._config.getoption("processes"), len(self._scopes))):
                self._fork(session)
            while self._processes:
                self._hear(session)
        except BaseException:
            self._is_broken_off = True
            # Each stops its servers in order.
            for process in self._processes:
                process.interrupt()
            while self._processes:
                self._hear(session)
            raise
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        # One that ended after its last test fails no test.
        if self._has_lost_one and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def states(self) -> list[str]:
        """What each process is at, in a line."""
        return [self._state(process) for process in self._processes]

    def _state(self, process: Process) -> str:
        if not process.assigned:
            return f"{process.pid} has no test"
        return f"{process.pid} is at {self._scopes.name(process.assigned[0])}, and {len(process.assigned) - 1} after it"

    def _fork(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        # A fork has none of the threads, but the locks that they hold.
        with self._config.stash[WATCHDOG].paused():
            parent = os.getpid()
            self._forked += 1
            if (pid := os.fork()) == 0:
                for connection in (ours, *(process.connection for process in self._processes)):
                    connection.close()
                run_forked(session, theirs, self._forked, parent)
        theirs.close()
        self._processes.append(Process(pid, ours))

    def _hear(self, session: pytest.Session) -> None:
        """Waits for what any process sends, or its end."""
        ready = wait([one for process in self._processes for one in (process.connection, process.alive)])
        for process in list(self._processes):
            if process.alive in ready:
                self._answer(session, process)
                self._ended(session, process)
            elif process.connection in ready:
                self._answer(session, process)

    def _answer(self, session: pytest.Session, process: Process) -> None:
        hook = self._config.hook
        for message in process.messages():
            match message:
                case Next():
                    self._give(session, process)
                case Started(nodeid, location):
                    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
                case Report(data):
                    report = hook.pytest_report_from_serializable(config=self._config, data=data)
                    hook.pytest_runtest_logreport(report=report)
                case Finished(nodeid, location):
                    process.assigned.pop(0)
                    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
                case Warned():
                    self._warn(message)

    def _give(self, session: pytest.Session, process: Process) -> None:
        scope = None if self._ends(session) else self._scopes.take(with_service=process.has_service)
        given: list[int] = []
        if scope is not None:
            process.has_service |= scope.needs_service
            process.assigned += scope.tests
            given = scope.tests
        with contextlib.suppress(ConnectionError):  # it has died meanwhile
            process.connection.send(given)

    def _ends(self, session: pytest.Session) -> bool:
        return bool(self._is_broken_off or session.shouldfail or session.shouldstop)

    def _warn(self, told: Warned) -> None:
        category = type(told.category, (Warning,), {})
        warning = warnings.WarningMessage(category(told.text), category, told.filename, told.lineno)
        self._config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "nodeid": told.nodeid, "when": "runtest", "location": None}
        )

    def _ended(self, session: pytest.Session, process: Process) -> None:
        """The test that it died of is not run again; the rest of what it had is another's."""
        self._processes.remove(process)
        if process.close() == 0 or self._is_broken_off:
            return
        self._has_lost_one = True
        if process.assigned:
            nodeid = self._scopes.name(process.assigned.pop(0))
            path = nodeid.partition("::")[0]
            crash = pytest.TestReport(
                nodeid, (path, None, path), {}, "failed", f"its process crashed while running {nodeid!r}", "call"
            )
            self._config.hook.pytest_runtest_logreport(report=crash)
        self._scopes.give_back(process.assigned)
        if len(self._scopes) and not self._ends(session):
            self._fork(session)
