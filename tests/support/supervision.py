"""A plugin: no process that a run of the tests starts outlives the run, however it ends.

pytest runs in a child of the process that was started. That one adopts whatever loses its parent meanwhile, in any
process group or session (a "subreaper", prctl(2)), and kills what is left once pytest has ended.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Generator

import psutil
import pytest

from tests.support.in_memory import run_folder

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

_REQUESTS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_QUIT_SECONDS = 5.0
"""For PostgreSQL servers to end by themselves: killed, they leave shared memory behind."""
_KILL_SECONDS = 30.0


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    if sys.platform == "linux":
        if hasattr(config, "workerinput"):
            die_with(os.getppid())
        else:
            _go_on_in_a_child(has_folder=bool(config.option.basetemp))
    return (yield)


def die_with(parent: int) -> None:
    """Binds the calling process to its parent: the kernel kills it when `parent` ends. For a `preexec_fn` too."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def _go_on_in_a_child(*, has_folder: bool) -> None:
    """Returns in the child only."""
    supervisor = os.getpid()
    folder = None if has_folder else run_folder()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    awaited = {signal.SIGCHLD, signal.SIGINT, *_REQUESTS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    pytest_pid = os.fork()
    if pytest_pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        die_with(supervisor)
        return
    try:
        code = os.waitstatus_to_exitcode(_wait(pytest_pid, awaited))
        end_children()
        if folder is not None:
            folder.close(keep=code == pytest.ExitCode.TESTS_FAILED)
        os._exit(code if code >= 0 else 128 - code)
    finally:
        os._exit(1)


def _wait(pytest_pid: int, awaited: set[signal.Signals]) -> int:
    """Until pytest has ended; returns its wait status."""
    interrupted = False
    while True:
        received = signal.sigwaitinfo(awaited)
        number = received.si_signo
        if number == signal.SIGCHLD:
            ended = _reap()
            if pytest_pid in ended:
                return ended[pytest_pid]
        elif number == signal.SIGINT and interrupted:
            os.kill(pytest_pid, signal.SIGKILL)
        elif number == signal.SIGINT:
            interrupted = True
            # The terminal sends it to pytest as well, which then stops servers in its own order; kill(1) does not.
            if received.si_code <= 0:
                os.kill(pytest_pid, number)
        else:
            os.kill(pytest_pid, number)


def _reap() -> dict[int, int]:
    """Wait statuses by the ids of the children, adopted ones among them, that have ended."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            ended[one[0]] = one[1]
    return ended


def end_children() -> None:
    """Ends all that the calling process has started or adopted, and names it."""
    started = time.monotonic()
    names = set()
    while remaining := psutil.Process().children(recursive=True):
        waited = time.monotonic() - started
        for process in remaining:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    names.add(f"{process.name()} ({process.pid})")
                    is_postgres = process.name() == "postgres" and waited < _QUIT_SECONDS
                    process.send_signal(signal.SIGQUIT if is_postgres else signal.SIGKILL)
        if waited > _KILL_SECONDS:
            break
        time.sleep(0.02)
        _reap()
    if names:
        os.write(2, f"processes that outlived pytest were ended: {', '.join(sorted(names))}\n".encode())


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
