"""How a process that has used Temporal's client exits."""

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
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


def _status(code: object) -> int:
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        return 1
    return code if isinstance(code, int) else 0
