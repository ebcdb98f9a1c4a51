"""A whole embedded stack for tests: in a subprocess of its own, as an operator runs it."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
from temporalio.client import Client

from app.core.temporal import connect
from app.local.stack_file import StackFile
from tests import servers
from tests.local.stack_process import COMMAND, StackProcess
from tests.support.waiting import until

PARTS = ("worker", "api", "temporal", "control-postgres", "postgres-us-east-1", "mysql-us-east-1")
_PATIENCE_SECONDS = 60.0
"""To log in and to leave: on a machine with other work a server's process starts and ends late."""


class LiveStack:
    """A stack with both engines. Its services may be killed; each is restarted."""

    def __init__(self, process: StackProcess) -> None:
        self._process = process
        self.home: Path = process.home

    @property
    def file(self) -> StackFile:
        """The current file: a restarted service has another process id."""
        return self._process.stack

    def pid(self, part: str) -> int:
        return self.file.processes[part][0]

    def send_signal(self, part: str, number: signal.Signals) -> None:
        """Sends a signal to the service's main process, unless it is down."""
        signal_process(self.pid(part), number)

    async def kill(self) -> None:
        """As a machine without power ends it: everything at once."""
        await self._process.stop(signal.SIGKILL)
        await until(lambda: self._process.survivors() == [])

    async def start(self) -> None:
        """Again, with its data."""
        await self._process.start()

    async def control(self, sql: str, *arguments: object) -> list[Any]:
        """Rows of our own database."""
        connection = await asyncpg.connect(self.file.control_dsn, timeout=_PATIENCE_SECONDS)
        try:
            rows = list(await connection.fetch(sql, *arguments))
        except BaseException:
            # Whoever has given up doesn't wait for the server's process to end.
            connection.terminate()
            raise
        await connection.close(timeout=_PATIENCE_SECONDS)
        return rows

    async def temporal(self) -> Client:
        return await connect(self.file.temporal_address, self.file.temporal_namespace)


@asynccontextmanager
async def live_stack(home: Path, program: tuple[str, ...] = COMMAND, /, **settings: str) -> AsyncIterator[LiveStack]:
    """`settings` are environment variables without their prefix; without them there is no warm pool. Skips the test
    without a MySQL server."""
    servers.machine_mysqld()
    process = StackProcess(home, program, **{"POOL_SIZE": "0", **settings})
    try:
        await process.start()
        yield LiveStack(process)
    finally:
        await process.stop()


def signal_process(pid: int, number: signal.Signals) -> None:
    """Sends a signal, unless the process is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
