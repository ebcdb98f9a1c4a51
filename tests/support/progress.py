"""A plugin: names what fails when it fails, not only at the end, and says how much processor time the run took."""

import os
import resource
import time

import pytest

from tests.support.in_memory import note_failure


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        session.config.pluginmanager.register(Progress(terminal))


class Progress:
    """In the process that reports: with several, the one that runs no tests."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._started = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            sections = (f"{title}\n{content}" for title, content in report.sections)
            note_failure("\n".join([f"{report.nodeid} ({report.when})", report.longreprtext, *sections]))
            # Also where the terminal does not know that it is within a line of dots.
            self._terminal.write("\n")
            self._terminal.write_line(f"failed: {report.nodeid} ({report.when}): {_reason(report)}", red=True)
            self._terminal.flush()

    def pytest_terminal_summary(self) -> None:
        # Of what has been waited for: the processes that ran tests, their servers, and the servers' own processes.
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        processor = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        elapsed = time.monotonic() - self._started
        share = processor / elapsed / (os.cpu_count() or 1)
        self._terminal.write_line(
            f"processor time: {processor:.0f} s in {elapsed:.0f} s, {share:.0%} of {os.cpu_count()} cores"
        )


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return next(iter(text.splitlines()), "")[:200]
