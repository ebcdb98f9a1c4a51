"""`python -m app.local.spare_process`: imports all of the API and the workers, then becomes what it reads.

Its input is one `Takeover` as JSON, up to the end of the stream; an empty one ends it.
"""

import gc
import importlib
import os
import runpy
import sys
import time

import msgspec

_SERVED = ("app.http.serving", "workers.serving")
"""What the programs that it may become import."""


class Takeover(msgspec.Struct, frozen=True):
    """`argv` is what would follow `python -m`, `environ` the whole environment."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    log: str


def main() -> None:
    known = set(os.environ)
    # As in the programs themselves: what is imported stays.
    gc.disable()
    for module in _SERVED:
        importlib.import_module(module)
    of_libraries = {name: value for name, value in os.environ.items() if name not in known}
    if message := sys.stdin.buffer.read():
        _become(msgspec.json.decode(message, type=Takeover), of_libraries)


def _become(takeover: Takeover, of_libraries: dict[str, str]) -> None:
    log = os.open(takeover.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for number, source in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(source, number)
    os.environ.clear()
    os.environ.update(of_libraries | takeover.environ)
    time.tzset()
    sys.argv = list(takeover.argv)
    runpy.run_module(takeover.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
