"""The process that has imported the API and the workers, and forks one for each that tests start.

`python -m tests.support.fork_server SOCKET` answers one request at a time on that socket, and ends with the process
that started it. `tests.support.forks` asks it.
"""

import ctypes
import gc
import importlib
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

import msgspec

PROGRAMS = {"app.http": "app.http.serving", "workers": "workers.serving"}
"""What can be run as `python -m`, and what has all that it imports."""
MOST_BYTES = 2**20
"""Of a message."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class StartRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for a process; it is answered with its id. `argv` begins with the program's name."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    """All of it."""
    log: str


class CodeRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for the exit code of a process that has ended, as `Popen.returncode` has it. It may be asked for once."""

    pid: int


def main() -> None:
    end_with(os.getppid())
    requests = socket.socket(fileno=int(sys.argv[1]))
    known = set(os.environ)
    gc.disable()
    for module in PROGRAMS.values():
        importlib.import_module(module)
    # Not looked at by the collector in any of those that are forked, which would make a copy of each page.
    gc.freeze()
    settings_of_libraries = {name: value for name, value in os.environ.items() if name not in known}
    serve(requests, settings_of_libraries)


def serve(requests: socket.socket, settings_of_libraries: Mapping[str, str] = MappingProxyType({})) -> None:
    """Answers requests until the other side closes the socket. The settings are added to the environment of each
    process."""
    while message := requests.recv(MOST_BYTES):
        request = msgspec.json.decode(message, type=StartRequest | CodeRequest)
        if isinstance(request, CodeRequest):
            _, status = os.waitpid(request.pid, 0)
            answer = os.waitstatus_to_exitcode(status)
        elif (answer := os.fork()) == 0:
            requests.close()
            _become(request, settings_of_libraries)
        requests.send(msgspec.json.encode(answer))


def _become(request: StartRequest, settings_of_libraries: Mapping[str, str]) -> NoReturn:
    """What the command line `python -m` would have become."""
    try:
        os.setsid()
        end_with(os.getppid())
        log = os.open(request.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for number, source in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(source, number)
        os.environ.clear()
        os.environ.update({**settings_of_libraries, **request.environ})
        time.tzset()
        sys.argv = list(request.argv)
        runpy.run_module(request.argv[0], run_name="__main__", alter_sys=True)
    finally:
        os._exit(1)


def end_with(parent: int) -> None:
    """The kernel kills this process when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


if __name__ == "__main__":
    main()
