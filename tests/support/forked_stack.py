"""`python -m tests.support.forked_stack`: the embedded stack, whose API and worker are forked from its own process.

A stack's own three processes take four seconds of processor time to import what they need. This one is itself forked
from a process that has imported it (`tests.support.forks`), and takes the place of the spare. Everything else is as
`python -m app.local` has it. With `--without-mysql` it finds no MySQL server on this machine, and may install none.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from app.core.process_exit import run_and_exit
from app.core.settings import Settings
from app.local import stack_services
from app.local.mysql_source import MysqlSource
from app.local.processes import ChildProcess, Command
from app.local.stack import run
from tests.support.forks import ForkServer

WITHOUT_MYSQL = "--without-mysql"


class ForkedSpare:
    """In place of `app.local.spare.Spare`: there is always one."""

    server: ForkServer

    def __init__(self, log: Path, marks: Mapping[str, str]) -> None:
        self.pid = None

    async def keep(self) -> None:
        await asyncio.Event().wait()

    async def start(self, command: Command) -> ChildProcess:
        return self.server.launch(command)

    async def stop(self) -> None:
        """There is none to end."""


def main() -> int:
    # First, while this process has no thread and no loop.
    ForkedSpare.server = ForkServer.forked()
    # The process that this one was forked from collects nothing.
    gc.enable()
    mysql = MysqlSource(folders=(), may_install=False) if WITHOUT_MYSQL in sys.argv else None
    with mock.patch.object(stack_services, "Spare", ForkedSpare):
        return run(Settings.load(os.environ), mysql=mysql)


if __name__ == "__main__":
    run_and_exit(main)
