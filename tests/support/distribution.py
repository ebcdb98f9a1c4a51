"""How the tests are divided between several processes: a plugin that `make test` names to pytest."""

from collections.abc import Generator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    "tests/console/",
    "tests/webhooks/",
    "tests/e2e/",
    "tests/workflows/",
    "tests/upkeep/reconcile/",
    "tests/pool/",
    "tests/workers/",
    "tests/tracing/",
)
"""Folders with a stack or a server for themselves: one process runs all of it, or each would start it, but for files
that are named below. They take longest too, so they come first and nobody waits for them at the end."""
LONG = (
    "tests/upkeep/reconcile/test_by_hand.py",
    "tests/contract/test_schemathesis.py",
    "tests/operations/test_model.py",
    "tests/harness/test_watchdog.py",
    "tests/races/",
    "tests/restores/",
    "tests/backups/",
    "tests/credentials/",
    "tests/backup_store/",
    "tests/deployment/test_register_hosts.py",
    "tests/upgrades/test_rolling.py",
    "tests/deployment/test_wheel.py",
    "tests/hosts/test_silent_host.py",
    "tests/storm/",
    "tests/model/",
    "tests/quotas/test_storage.py",
    "tests/clients/test_clients.py",
    "tests/engines/test_answer_bounds.py",
    "tests/local/test_stack.py",
    "tests/blueprints/test_linear.py",
    "tests/quotas/test_bounds.py",
    "tests/engines/test_hindrance.py",
    "tests/applications/test_apply.py",
    "tests/applications/test_crashes.py",
    "tests/quotas/test_undelete.py",
    "tests/engines/test_crash.py",
)
"""Files that take half a minute or more, and folders of such, for the same reason next; the longest first."""
_FIRST = (*TOGETHER, *LONG)


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """Gives each process a file at a time, or one of those folders."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in LONG:
            return file
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), file)

    def remove_node(self, node: Any) -> str | None:
        """Of a process that has ended: the test that it was running, which is not run again; others run the rest.

        xdist's own hands out that test again, and with it what is done already.
        """
        assigned = self.assigned_work.pop(node)
        remaining = {scope: [test for test, done in tests.items() if not done] for scope, tests in assigned.items()}
        running = next((tests.pop(0) for tests in remaining.values() if tests), None)
        returned = {scope: dict.fromkeys(tests, False) for scope, tests in remaining.items() if tests}
        if returned:
            self.workqueue.update(returned)
            for other in self.nodes:
                self._reschedule(other)
        return running

    def _reschedule(self, node: Any) -> None:
        """Gives the process more, or the word to end, until it goes on: it keeps one test until it has the next.

        xdist's own gives one file, and a new process that is given a single test waits for ever.
        """
        while node in self.registered_collections and not node.shutting_down:
            super()._reschedule(node)
            if self._pending_of(self.assigned_work[node]) > 1:
                return

    def states(self) -> list[str]:
        """What each process is at, in a line."""
        return [self._state(node.gateway.id, assigned) for node, assigned in self.assigned_work.items()]

    def _state(self, name: str, assigned: dict[str, dict[str, bool]]) -> str:
        remaining = [test for tests in assigned.values() for test, done in tests.items() if not done]
        if not remaining:
            return f"{name} has no test"
        return f"{name} is at {remaining[0]}, and {len(remaining) - 1} after it"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    places = (place for place, path in enumerate(_FIRST) if nodeid.startswith(path))
    return next(places, len(_FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """A report goes to the other process as UTF-8, which has no lone surrogates: text of a test's may."""
    report: dict[str, Any] | None = _encodable((yield))
    return report


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_encodable, value))
    return value
