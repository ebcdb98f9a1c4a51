"""Our own processes in the stack: the API, and one worker for all queues."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue
from app.local.processes import ChildProcess, Command
from app.local.services import Service
from app.local.spare import Spare

_PYTHON = (sys.executable, "-P", "-m")
"""This Python never imports modules from the folder in which the stack was started."""

Environ = Callable[[], Mapping[str, str]]
"""Called at each start, so that it has the current addresses of the other services."""


class PythonService(Service):
    """A process of ours. It begins as the spare, if there is one."""

    def __init__(self, name: str, port: int, log: Path, spare: Spare | None) -> None:
        super().__init__(name, port, log)
        self._spare = spare

    async def launch(self, command: Command) -> ChildProcess:
        return await (super().launch(command) if self._spare is None else self._spare.start(command))


class ApiService(PythonService):
    """The HTTP API."""

    def __init__(
        self, name: str, *, port: int, log: Path, environ: Environ, host: str, spare: Spare | None = None
    ) -> None:
        super().__init__(name, port, log, spare)
        self._environ = environ
        # If it listens on every interface, it is checked on this one.
        self.host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not bound

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def command(self) -> Command:
        return Command(argv=(*_PYTHON, "app.http"), log=self.log, environ=dict(self._environ()))

    async def is_ready(self) -> bool:
        try:
            async with asyncio.timeout(2):
                return await self._get("/health/ready") == 200
        except (OSError, TimeoutError):
            return False

    async def _get(self, path: str) -> int:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            request = f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            await writer.drain()
            status = (await reader.readline()).split()
        finally:
            writer.close()
        return int(status[1]) if len(status) > 1 else 0


def every_queue(regions: tuple[str, ...]) -> tuple[str, ...]:
    """The queues of a worker that is the only one."""
    return (CONTROL_QUEUE, WEBHOOK_QUEUE, *map(engine_queue, regions))


class WorkerService(PythonService):
    """A worker process for these queues. It listens only for its metrics, on `metrics_port`, if at all; its log
    shows when it has begun to poll."""

    def __init__(
        self,
        name: str,
        *,
        log: Path,
        environ: Environ,
        queues: tuple[str, ...],
        metrics_port: int = 0,
        spare: Spare | None = None,
    ) -> None:
        super().__init__(name, metrics_port, log, spare)
        self._environ = environ
        self._queues = queues
        self._log_start = 0

    def command(self) -> Command:
        self._log_start = os.path.getsize(self.log) if self.log.exists() else 0
        queues = [argument for queue in self._queues for argument in ("--queue", queue)]
        return Command(argv=(*_PYTHON, "workers", *queues), log=self.log, environ=dict(self._environ()))

    async def is_ready(self) -> bool:
        try:
            with self.log.open("rb") as log:
                # Meanwhile a log that is too long may have been emptied.
                size = log.seek(0, os.SEEK_END)
                log.seek(self._log_start if self._log_start <= size else 0)
                return b"worker_ready" in log.read()
        except FileNotFoundError:
            return False
