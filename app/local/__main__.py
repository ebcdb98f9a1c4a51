"""`python -m app.local`: runs the embedded stack in the foreground, as `headwater up` does."""

import contextlib
import os
import sys

import msgspec

from app.core.process_exit import run_and_exit
from app.core.settings import InvalidSettings, Settings
from app.local.screen import Screen
from app.local.stack import run
from app.local.stack_file import StackFile
from app.quotas.file import load_plans


def main(*, as_json: bool = False) -> int:
    """Runs the stack, and returns the exit code. With `as_json` the contents of stack.json are printed too, on one
    line, when the stack is ready."""
    try:
        settings = Settings.load(os.environ)
        # The services read it themselves. Here it is only checked, before any of them starts.
        load_plans(settings.plans_file)
    except InvalidSettings as error:
        Screen().fail(str(error))
        return 1
    return run(settings, on_ready=_print if as_json else None)


def _print(stack: StackFile) -> None:
    # Nobody has to read it: the stack goes on, and stack.json has the same.
    with contextlib.suppress(OSError):
        sys.stdout.buffer.write(msgspec.json.encode(stack) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    run_and_exit(main)
