"""How the tests are divided between two processes: a plugin that `make test` names to pytest."""

from collections.abc import Generator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/webhooks/", "tests/e2e/", "tests/pool/", "tests/workflows/", "tests/workers/")
"""Folders with a stack or a server for themselves: one process runs all of it, or each would start it. They take
longest too, so they come first and nobody waits for them at the end."""


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """Gives each process a file at a time, or one of those folders."""

    def _split_scope(self, nodeid: str) -> str:
        folder = next((folder for folder in TOGETHER if nodeid.startswith(folder)), None)
        return folder or nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    places = (place for place, folder in enumerate(TOGETHER) if nodeid.startswith(folder))
    return next(places, len(TOGETHER))


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
