"""A plugin: what a test leaves open fails that test, not the one during which the collector comes upon it.

A connection that nobody closed warns when it is collected, which Python does at a time of its own choice, and pytest
turns the warning into a failure of whichever test runs then.
"""

import gc
from collections.abc import Iterator

import pytest

_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
"""More than a test makes: what it made is still among the young objects when it ends, and only those are looked at."""
_YOUNG = 1
"""The older of the generations in which a test's objects are, also when it made more."""


def pytest_configure() -> None:
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, _OBJECTS_BETWEEN_COLLECTIONS)


def pytest_collection_finish() -> None:
    _keep()


@pytest.fixture(autouse=True)
def _collect_after_each_test() -> Iterator[None]:
    yield
    gc.collect(_YOUNG)


@pytest.fixture(autouse=True, scope="module")
def _collect_after_each_module() -> Iterator[None]:
    """What the module's own fixtures left open."""
    yield
    _keep()


def _keep() -> None:
    """What is alive here is alive until the end: no later collection goes through it, which makes them cheap."""
    gc.collect()
    gc.freeze()
