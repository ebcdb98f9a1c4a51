"""How a process that has used Temporal's client exits."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn


def run_and_exit(main: Callable[[], object]) -> NoReturn:
    """Runs `main` and exits with its status, as `sys.exit` would, but without Python's normal shutdown.

    The threads of Temporal's client outlive its connection. One that calls into Python during the interpreter's
    shutdown aborts the process with status 134, although its work was done.
    """
    status = 1
    try:
        status = _status(main())
    except SystemExit as end:
        status = _status(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        logging.shutdown()
        os._exit(_flushed(status))


def _flushed(status: int) -> int:
    """Flushes both outputs and returns the status to exit with. It is not 0 where standard output could not be written.
    A failure on standard error, because the terminal or the reader of a pipe is gone, changes nothing."""
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except OSError:
        return status or 1
    return status


def _status(code: object) -> int:
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        return 1
    return code if isinstance(code, int) else 0
