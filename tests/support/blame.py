"""A plugin: what a test leaves open fails that test, not the one during which the collector comes upon it.

A connection that nobody closed warns when it is collected, which Python does at a time of its own choice, and pytest
turns the warning into a failure of whichever test runs then.
"""

import gc
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    _keep()


@pytest.fixture(autouse=True)
def _collect_after_each_test() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(autouse=True, scope="module")
def _collect_after_each_module() -> Iterator[None]:
    """What the module's own fixtures left open."""
    yield
    _keep()


def _keep() -> None:
    """What is alive here is alive until the end: no later collection goes through it, which makes them cheap."""
    gc.collect()
    gc.freeze()
