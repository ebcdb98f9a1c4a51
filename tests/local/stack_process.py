"""A whole stack in a process of its own, as `make up` starts it."""

import asyncio
import os
import signal
import sys
import urllib.request
from asyncio.subprocess import Process
from functools import partial
from pathlib import Path
from uuid import uuid4

import psutil

from app.local import stack_file
from app.local import stale_processes as leftovers
from app.local.stack_file import StackFile
from tests.support.fork_server import StartRequest
from tests.support.forks import ForkedProcess, fork_server
from tests.support.ports import free_port
from tests.support.supervision import die_with
from tests.support.waiting import LIMIT_SECONDS, until

_ROOT = Path(__file__).parents[2]
_MODULE = "tests.support.forked_stack"
COMMAND = ("-m", "app.local")
"""As an operator's `make up` runs it."""
UP = (str(Path(sys.executable).parent / "headwater"), "up")
"""As an operator without `make` does."""
FORKED = ("-m", _MODULE)
"""The same with less to import: see there."""
WITHOUT_MYSQL = ("-m", _MODULE, "--without-mysql")
"""No MySQL server is found on this machine, and none may be installed."""


class StackProcess:
    """`settings` are environment variables without their prefix, an empty one for none; ports are free ones unless
    given. `program` runs in `folder`, by this interpreter unless it begins with a path. What it writes goes to a file,
    or to the named pipe `output`, which the test reads by itself."""

    def __init__(
        self,
        home: Path,
        program: tuple[str, ...] = COMMAND,
        *,
        folder: str = str(_ROOT),
        output: str = "",
        **settings: str,
    ) -> None:
        self.home = home
        self._program = program
        self._folder = folder
        # Its own, where several run on the same home.
        self._output = Path(output) if output else home.parent / f"{home.name}-{uuid4()}.output"
        named = ("API_PORT", "METRICS_PORT", "TEMPORAL_PORT", "TEMPORAL_UI_PORT")
        ports = {name: str(free_port()) for name in named}
        ours = {"HOME": str(home), "POOL_SIZE": "0", "FINAL_BACKUPS": "false"} | ports | settings
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        self._environ = environ | {f"HEADWATER_{name}": value for name, value in ours.items()}
        self._process: Process | ForkedProcess | None = None

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def stack(self) -> StackFile:
        stack = stack_file.read(self.home)
        assert stack is not None
        return stack

    async def run(self) -> int:
        """Runs a stack that ends by itself, and returns its exit code."""
        await self.spawn()
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), LIMIT_SECONDS)

    async def start(self, line: str = "Headwater is ready") -> None:
        """Returns when the stack says that it is ready, or those words."""
        await self.spawn()
        process = self._process
        assert process is not None
        await until(lambda: process.returncode is not None or line in self.output)
        assert process.returncode is None, self.output

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal, waits for the end, and returns the exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        return await asyncio.wait_for(self._process.wait(), LIMIT_SECONDS)

    def survivors(self) -> list[str]:
        """What still runs of the stack, by any sign."""
        listed = stack_file.read_last(self.home)
        pids = {pid for pids in listed.processes.values() for pid in pids} if listed else set()
        return [command for command in map(_command, {*pids, *leftovers.find(self.home)}) if command is not None]

    async def health(self) -> int:
        """The status that the API answers its readiness check with."""
        return await asyncio.to_thread(self._health)

    def _health(self) -> int:
        with urllib.request.urlopen(f"{self.stack.api_url}/health/ready", timeout=LIMIT_SECONDS) as response:
            return int(response.status)

    async def spawn(self) -> None:
        """Starts it, and waits for nothing."""
        with self._output.open("wb") as output:
            if self._program[:2] == FORKED:
                request = StartRequest(self._program[1:], self._environ, str(self._output))
                self._process = fork_server().start(request)
                return
            argv = self._program if self._program[0].startswith("/") else (sys.executable, *self._program)
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdout=output,
                stderr=output,
                env=self._environ,
                cwd=self._folder,
                preexec_fn=partial(die_with, os.getpid()),
            )


def _command(pid: int) -> str | None:
    """None for one that has ended, or ends while it is looked at."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return None
