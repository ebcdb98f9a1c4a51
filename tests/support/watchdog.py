"""A plugin: a test that hangs is named and its process ended; a run from which nothing comes any more is broken off.

Three clocks, none of which needs what may hang:
- in a process that runs tests, a thread ends it when a test, with its fixtures, takes longer than it may;
- there too, faulthandler's own thread, when code has kept the interpreter's lock from all others for that long;
- in a process that only reports what others run, a thread breaks the run off when no report came for longer than that.

The process ends because a hanging test can't be failed: nothing interrupts C code, and a coroutine that is only left
behind goes on in the loop that the next tests share. xdist counts the test as failed, and a new process runs the rest.
"""

import asyncio
import contextlib
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from types import AsyncGeneratorType, FrameType
from typing import Any

import psutil
import pytest

from tests.support.distribution import ByFolder
from tests.support.supervision import end_children

_LIMITS = {
    "test_limit": ("600", "seconds that a test may take, with the fixtures that it is the first or the last to use"),
    "soak_limit": ("5400", "the same for a test that is marked soak"),
    "silence_margin": ("120", "seconds beyond a test's limit until a run is broken off for want of reports"),
}
_STACKS_SIGNAL = signal.SIGUSR1
_STACKS = "stacks"
"""The file in memory of a process that runs tests, into which it writes where it is."""
_STACKS_SECONDS = 60.0
"""For all of them to do so, before the run is broken off: long enough for a machine with other work."""


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, (default, about) in _LIMITS.items():
        parser.addini(name, about, default=default)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("usepdb"):
        return
    # Not yet captured, as it is while tests run.
    stderr = os.dup(2)
    faulthandler.register(_STACKS_SIGNAL, file=os.memfd_create(_STACKS), all_threads=True)
    watchdog = Watchdog(config, stderr)
    config.pluginmanager.register(TestLimits(config, watchdog))
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(RunLimits(config, watchdog))


class Watchdog:
    """The thread. It watches one thing at a time, and ends the process when that takes longer than it may."""

    def __init__(self, config: pytest.Config, stderr: int) -> None:
        self._config = config
        self._stderr = stderr
        self._lock_seconds = limit(config, "test_limit")
        self._due: tuple[float, Callable[[], None]] | None = None
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def expect(self, what: str, seconds: float) -> None:
        """Ends the process unless something else is expected, or nothing, before `seconds` have passed."""
        self.call_after(seconds, partial(self._end, f"{what} took longer than {seconds:g} s"))

    def call_after(self, seconds: float, expired: Callable[[], None]) -> None:
        """The same with another end."""
        self._due = (time.monotonic() + seconds, expired)

    def expect_nothing(self) -> None:
        self._due = None

    def write(self, text: str) -> None:
        os.write(self._stderr, text.encode(errors="backslashreplace"))

    def _watch(self) -> None:
        while True:
            # Ends the process if this thread gets no turn for so long.
            faulthandler.dump_traceback_later(self._lock_seconds, exit=True, file=self._stderr)
            time.sleep(min(1.0, self._lock_seconds / 10))
            due = self._due
            if due is not None and time.monotonic() > due[0]:
                self._due = None
                due[1]()

    def _end(self, why: str) -> None:
        try:
            self.write(f"\n\n{why}; its process {os.getpid()} ends\n")
            self.write(f"it is at {os.environ.get('PYTEST_CURRENT_TEST', 'no test')}\n")
            self.write(_captured(self._config))
            faulthandler.dump_traceback(file=self._stderr, all_threads=True)
            self.write("".join(_tasks()))
            end_children()
        finally:
            # For pytest on its own: not all of the tests have run.
            os._exit(pytest.ExitCode.INTERRUPTED)


class TestLimits:
    """In each process that runs tests or reports them."""

    __test__ = False

    def __init__(self, config: pytest.Config, watchdog: Watchdog) -> None:
        self._config = config
        self._watchdog = watchdog

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        self._watchdog.expect("the collection", limit(self._config, "test_limit"))
        try:
            return (yield)
        finally:
            self._watchdog.expect_nothing()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        is_long = item.get_closest_marker("soak") is not None
        self._watchdog.expect(item.nodeid, limit(self._config, "soak_limit" if is_long else "test_limit"))
        try:
            return (yield)
        finally:
            self._watchdog.expect_nothing()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        self._watchdog.expect("the end of the session", limit(self._config, "test_limit"))
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        # A process of xdist's waits here for the others. The one that was started ends, or is ended.
        if hasattr(self._config, "workerinput"):
            self._watchdog.expect_nothing()

    def pytest_enter_pdb(self) -> None:
        self._watchdog.expect_nothing()


class RunLimits:
    """In the process that reports what others run."""

    def __init__(self, config: pytest.Config, watchdog: Watchdog) -> None:
        self._config = config
        self._watchdog = watchdog
        is_short = "not soak" in config.getoption("markexpr")
        longest = limit(config, "test_limit" if is_short else "soak_limit")
        self._silence = longest + limit(config, "silence_margin")
        self._lost_a_process = False

    def pytest_runtestloop(self) -> None:
        self._heard()

    def pytest_runtest_logstart(self) -> None:
        self._heard()

    def pytest_runtest_logreport(self) -> None:
        self._heard()

    def pytest_runtest_logfinish(self) -> None:
        self._heard()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self) -> None:
        self._heard()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object | None) -> None:
        self._lost_a_process = self._lost_a_process or error is not None
        self._heard()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        # One that ended after its last test fails no test.
        if self._lost_a_process and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def _heard(self) -> None:
        self._watchdog.call_after(self._silence, self._break_off)

    def _break_off(self) -> None:
        """As Ctrl-C does: what has failed is shown, and the servers are stopped."""
        scheduler = getattr(self._config.pluginmanager.get_plugin("dsession"), "sched", None)
        states = scheduler.states() if isinstance(scheduler, ByFolder) else []
        self._watchdog.write(
            f"\n\nno report came for {self._silence:g} s; the run is broken off\n"
            + "".join(f"{state}\n" for state in states)
        )
        files = {process: _stacks_file(process.pid) for process in psutil.Process().children()}
        for process in files:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(_STACKS_SIGNAL)
        ends = time.monotonic() + _STACKS_SECONDS
        for file in filter(None, files.values()):
            self._watchdog.write(_stacks(file, ends))
        self._watchdog.expect("the end of the run", limit(self._config, "silence_margin"))
        os.kill(os.getpid(), signal.SIGINT)


def _stacks_file(pid: int) -> Path | None:
    with contextlib.suppress(OSError):
        links = Path(f"/proc/{pid}/fd").iterdir()
        return next((link for link in links if os.readlink(link).startswith(f"/memfd:{_STACKS} ")), None)
    return None


def _stacks(file: Path, ends: float) -> str:
    """Of all threads of a process that was asked for them, once the watchdog's is among them, which each has."""
    text = ""
    while "in _watch" not in text and time.monotonic() < ends:
        time.sleep(0.02)
        try:
            text = file.read_text(errors="replace")
        except OSError:  # it has ended
            break
    return text


def limit(config: pytest.Config, name: str) -> float:
    """Seconds, from the settings of pytest."""
    return float(config.getini(name))


def _captured(config: pytest.Config) -> str:
    """What the test has printed so far."""
    with contextlib.suppress(Exception):
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        return "".join(capture.read_global_capture())
    return ""


def _tasks() -> Iterator[str]:
    """Each task of each loop that runs, with the whole chain of what it awaits; a task shows its own frame only."""
    for frame in sys._current_frames().values():
        loop = _loop_of(frame)
        for task in asyncio.all_tasks(loop) if loop is not None else ():
            frames = ((one, one.f_lineno) for one in _awaited(task.get_coro()))
            yield f"\n{task!r}\n"
            yield from traceback.StackSummary.extract(frames).format()


def _loop_of(frame: FrameType | None) -> asyncio.AbstractEventLoop | None:
    while frame is not None:
        if frame.f_code.co_name == "run_forever":
            loop = frame.f_locals.get("self")
            return loop if isinstance(loop, asyncio.AbstractEventLoop) else None
        frame = frame.f_back
    return None


def _awaited(coroutine: object) -> Iterator[FrameType]:
    while coroutine is not None:
        frame = _first(coroutine, "cr_frame", "gi_frame", "ag_frame")
        if isinstance(frame, FrameType):
            yield frame
        coroutine = _first(coroutine, "cr_await", "gi_yieldfrom", "ag_await") or _generator_of(coroutine)


def _generator_of(step: object) -> AsyncGeneratorType[Any, Any] | None:
    """Of what an asynchronous generator's `asend()` gives, which doesn't name it."""
    if type(step).__name__ not in ("async_generator_asend", "async_generator_athrow"):
        return None
    return next((one for one in gc.get_referents(step) if isinstance(one, AsyncGeneratorType)), None)


def _first(of: object, *names: str) -> object | None:
    return next((value for name in names if (value := getattr(of, name, None)) is not None), None)
