"""Ports for servers of tests, which listen on them seconds later: nobody else gets one meanwhile."""

import os
import random
from collections.abc import Iterator
from functools import cache

from app.local.ports import is_free

_FIRST, _PROCESSES, _EACH = 20_000, 5, 2_400
"""Below those that Linux gives to outgoing connections and to servers that ask for any, and above all defaults."""


def free_port() -> int:
    """One that nobody listens on. This process gives it once, and others that run tests have their own."""
    return next(port for port in _ports() if is_free(port))


@cache
def _ports() -> Iterator[int]:
    return _endless(_number_of_process() % _PROCESSES)


def _endless(process: int) -> Iterator[int]:
    # From anywhere, since another run may have the same.
    at = random.randrange(_EACH)
    while True:
        yield _FIRST + process * _EACH + at
        at = (at + 1) % _EACH


def _number_of_process() -> int:
    name = os.environ.get("PYTEST_XDIST_WORKER")
    return int(name.removeprefix("gw")) if name else os.getpid()
