"""A plugin: how much processor time each test took, with that of all processes that it started or used.

`make test ARGS="-p tests.support.costs tests/quotas"` prints the dearest tests and all folders. With several processes,
each counts its own servers. What several tests share is counted where it is first asked for.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

_SHOWN = 40
_PROPERTY = "processor_seconds"


class Costs:
    def __init__(self) -> None:
        self._seen = 0.0
        self._tests: dict[str, float] = defaultdict(float)

    def pytest_collection_finish(self) -> None:
        self._seen = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _processor_seconds()
        # Goes with the report to the process that prints.
        report.user_properties.append((_PROPERTY, now - self._seen))
        self._seen = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += sum(
            float(str(value)) for name, value in report.user_properties if name == _PROPERTY
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders: dict[str, float] = defaultdict(float)
        for test, seconds in self._tests.items():
            folders[os.path.dirname(test.partition("::")[0])] += seconds
        for title, costs in (("tests", self._tests), ("folders", folders)):
            terminalreporter.section(f"processor time of {title}")
            for name, seconds in sorted(costs.items(), key=lambda one: -one[1])[:_SHOWN]:
                terminalreporter.write_line(f"{seconds:8.2f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Costs())


def _processor_seconds() -> float:
    """Of this process and all below it, and of those that they have waited for."""
    ids, seconds = [os.getpid()], 0.0
    while ids:
        pid = ids.pop()
        ids += _children(pid)
        seconds += _of_process(pid)
    return seconds


def _children(pid: int) -> list[int]:
    # psutil would read all processes of the machine, which takes longer than most tests do.
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _of_process(pid: int) -> float:
    try:
        return sum(psutil.Process(pid).cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0
