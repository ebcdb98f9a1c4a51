"""What a module logs, whatever was configured in this process before."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import structlog
from structlog.testing import capture_logs


@contextmanager
def logged_by(module: ModuleType) -> Iterator[list[MutableMapping[str, Any]]]:
    """The lines of its `log` during the block. A logger that was used before keeps the configuration that it met, and
    `capture_logs` alone would see nothing of it."""
    before = module.log
    module.log = structlog.get_logger()  # type: ignore[attr-defined]  # every module that logs has one
    try:
        with capture_logs() as lines:
            yield lines
    finally:
        module.log = before  # type: ignore[attr-defined]
