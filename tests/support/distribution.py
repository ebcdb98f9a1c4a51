"""How the tests are divided between several processes, and in which order they are given to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

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
    "tests/operations/test_model.py",
    "tests/races/",
    "tests/restores/",
    "tests/backups/",
    "tests/credentials/",
    "tests/backup_store/",
    "tests/deployment/test_register_hosts.py",
    "tests/contract/test_schemathesis.py",
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
_SERVICE = "service"
"""The fixture with the service that tests share: to start it takes a process five seconds of processor time."""


@dataclass(frozen=True)
class Scope:
    """A file, or one of those folders: one process runs all of it."""

    path: str
    tests: list[int]
    """By their places among all."""
    needs_service: bool

    @property
    def place(self) -> int:
        """In which order scopes are given away."""
        if self.path in _FIRST:
            return _FIRST.index(self.path)
        places = (place for place, path in enumerate(_FIRST) if self.path.startswith(path))
        return next(places, len(_FIRST))


class Scopes:
    """Those that no process has been given yet."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._items = items
        self._left = sorted(self._scopes(range(len(items))), key=lambda scope: scope.place)

    def __len__(self) -> int:
        return len(self._left)

    def name(self, test: int) -> str:
        return self._items[test].nodeid

    def take(self, *, with_service: bool) -> Scope | None:
        """The next one for a process with the service that tests share, or without: with it, one that needs it, as
        long as there are any, so that not all processes start one."""
        short = [scope for scope in self._left if scope.place == len(_FIRST)]
        if len(short) < len(self._left):
            found: Scope | None = self._left[0]
        else:
            fitting = (scope for scope in short if scope.needs_service == with_service)
            found = next(fitting, next(iter(short), None))
        if found is not None:
            self._left.remove(found)
        return found

    def give_back(self, tests: Iterable[int]) -> None:
        """Of a process that has ended. They come first."""
        self._left[:0] = self._scopes(tests)

    def _scopes(self, tests: Iterable[int]) -> list[Scope]:
        by_path: dict[str, list[int]] = {}
        for test in tests:
            by_path.setdefault(_path(self.name(test)), []).append(test)
        return [
            Scope(path, places, any(_needs_service(self._items[place]) for place in places))
            for path, places in by_path.items()
        ]


def _path(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    folder = next((folder for folder in TOGETHER if file.startswith(folder)), file)
    return file if file in LONG else folder


def _needs_service(item: pytest.Item) -> bool:
    """The one of the whole run, not one of the same name of a folder's own."""
    fixtures = getattr(item, "_fixtureinfo", None)
    found = fixtures.name2fixturedefs.get(_SERVICE, ()) if fixtures is not None else ()
    return any(one.scope == "session" for one in found[-1:])
