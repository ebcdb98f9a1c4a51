"""A process that has imported all of the API and the workers, ready to take the place of one that dies.

An import takes a second of processor time and more, which is most of what the death of an API or a worker costs. One
spare serves both; the next is started when things are quiet again.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.local.errors import StackError
from app.local.processes import ChildProcess, Command
from app.local.spare_process import Takeover

_FIRST_LOOK_SECONDS = 30.0
"""A stack that has just started has the processor to itself first: most stacks that end early need no spare."""
_LOOK_SECONDS = 5.0
"""A process that starts again has the processor to itself first too."""


class Spare:
    """One spare at most. `marks` are added to its environment."""

    def __init__(self, log: Path, marks: Mapping[str, str]) -> None:
        self._command = Command(
            argv=(sys.executable, "-P", "-m", "app.local.spare_process"),
            log=log,
            environ={**os.environ, **marks, "PYTHONUNBUFFERED": "1"},
            takes_input=True,
        )
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        """The spare's process id; None while there is no spare."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def keep(self, first: float = _FIRST_LOOK_SECONDS, every: float = _LOOK_SECONDS) -> None:
        """Never returns: looks after `first` seconds, and then every `every` seconds, and starts a spare where there is
        none."""
        await asyncio.sleep(first)
        while True:
            if self.pid is None:
                # Without a spare a restart takes longer, and that is all.
                with contextlib.suppress(StackError):
                    self._process = await ChildProcess.start(self._command)
            await asyncio.sleep(every)

    async def start(self, command: Command) -> ChildProcess:
        """A process that runs this command, which is `python -m` one of ours: the spare, or a new one where there is
        none. Raises `StackError`."""
        spare, self._process = self._process, None
        if spare is None or spare.returncode is not None:
            return await ChildProcess.start(command)
        program = command.argv[command.argv.index("-m") + 1 :]
        takeover = Takeover(argv=program, environ=dict(command.environ), log=str(command.log))
        return spare.become(command, msgspec.json.encode(takeover))

    async def stop(self) -> None:
        """Ends the spare, if there is one. Repeatable."""
        if self._process is not None:
            await self._process.kill()
