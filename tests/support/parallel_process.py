"""A forked process that runs tests: it asks for them, and sends what becomes of them."""

import os
import random
import sys
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import pytest
from _pytest.tmpdir import TempPathFactory

from tests.support.supervision import die_with
from tests.support.watchdog import WATCHDOG

Location = tuple[str, int | None, str]

_REPORTING = ("terminalreporter", "headwater-progress", "headwater-parallel", "headwater-run-limits")
"""Plugins of the process that reports."""


@dataclass(frozen=True)
class Next:
    """Asks for the next tests, by their places; the answer is empty when none are left."""


@dataclass(frozen=True)
class Started:
    nodeid: str
    location: Location


@dataclass(frozen=True)
class Report:
    data: dict[str, Any]


@dataclass(frozen=True)
class Finished:
    nodeid: str
    location: Location


@dataclass(frozen=True)
class Warned:
    text: str
    category: str
    filename: str
    lineno: int
    nodeid: str


def run_forked(session: pytest.Session, connection: Connection, number: int, parent: int) -> NoReturn:
    """What the calling process, which is a fork of `parent`'s, does until it ends."""
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        os.setpgid(0, 0)
        die_with(parent)
        code = _run(session, connection, number)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(session: pytest.Session, connection: Connection, number: int) -> pytest.ExitCode:
    config = session.config
    _be_no_reporter(config, number)
    config.stash[WATCHDOG].start()
    config.pluginmanager.register(_Sender(config, connection))
    code = pytest.ExitCode.OK
    try:
        _run_tests(session, connection)
    except KeyboardInterrupt:
        code = pytest.ExitCode.INTERRUPTED
    config.hook.pytest_sessionfinish(session=session, exitstatus=code)
    config.hook.pytest_unconfigure(config=config)
    return code


def _be_no_reporter(config: pytest.Config, number: int) -> None:
    """Leaves the terminal and the cache to the process that has them."""
    for name in _REPORTING:
        config.pluginmanager.unregister(name=name)
    # What plugins know such a process by.
    config.workerinput = {}  # type: ignore[attr-defined]
    # The files that hold what a test prints would be those of all.
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    config.option.basetemp = str(folders.getbasetemp() / f"process-{number}")
    config._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]
    random.seed()


def _run_tests(session: pytest.Session, connection: Connection) -> None:
    def more() -> list[pytest.Item]:
        connection.send(Next())
        return [session.items[place] for place in connection.recv()]

    items = more()
    while items:
        item = items.pop(0)
        # What it shares with the next one stays.
        items = items or more()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=items[0] if items else None)


class _Sender:
    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._send = connection.send

    def pytest_runtest_logstart(self, nodeid: str, location: Location) -> None:
        self._send(Started(nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._send(Report(self._config.hook.pytest_report_to_serializable(config=self._config, report=report)))

    def pytest_runtest_logfinish(self, nodeid: str, location: Location) -> None:
        self._send(Finished(nodeid, location))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: Any, nodeid: str) -> None:
        # Those of the collection were recorded before the fork.
        if when == "runtest":
            one = warning_message
            self._send(Warned(str(one.message), one.category.__name__, one.filename, one.lineno, nodeid))
