"""This process's own log, in the forms of production."""

import io
import logging
from collections.abc import Iterator

import pytest

from app.core import logging as our_logging


def _written(log_format: str, level: str = "info") -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers = root.handlers
    levels = {name: logging.getLogger(name).level for name in (None, *our_logging.OURS)}
    our_logging.configure(log_format, level)
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    written = io.StringIO()
    handler.setStream(written)
    yield written
    root.handlers = handlers
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def json_log() -> Iterator[io.StringIO]:
    yield from _written("json")


@pytest.fixture
def console_log() -> Iterator[io.StringIO]:
    yield from _written("console")


@pytest.fixture
def quiet_log() -> Iterator[io.StringIO]:
    """Of warnings and what is worse."""
    yield from _written("json", "warning")


@pytest.fixture
def debug_log() -> Iterator[io.StringIO]:
    yield from _written("json", "debug")
