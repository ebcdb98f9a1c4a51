"""The interface of the stack's services, and starting one: prepare, start, wait until it is ready."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from app.local.errors import StackError
from app.local.ports import LOOPBACK, PortAllocator, is_free, is_taken_by_others
from app.local.processes import ChildProcess, Command, tail

_POLL_SECONDS = 0.05
_SLOW_POLL_SECONDS = 0.5
"""The pause between polls of a slow server: each poll leaves a line in its log."""
_SOON_SECONDS = 5.0
_REPORT_SECONDS = 10.0

DATABASE_STOP_SECONDS = 60.0
"""At its end a database writes everything to disk. If it is killed meanwhile, the next start has to recover from its
log, which takes longer."""

Say = Callable[[str], None]


class Service(ABC):
    """A server of the stack, listening on a port of the loopback interface."""

    def __init__(self, name: str, port: int, log: Path) -> None:
        self.name = name
        """The name in `processes` of stack.json."""
        self.port = port
        self.host = LOOPBACK
        """The address at which it is asked whether it is ready."""
        self.log = log

    async def prepare(self) -> None:
        """Creates what must exist before the first start. Repeatable, even after a crash."""
        return

    def move(self, ports: PortAllocator) -> bool:
        """Moves to other ports if somebody else has taken its own; returns whether it did."""
        if is_free(self.port):
            return False
        self.port = ports.allocate()
        return True

    @abstractmethod
    def command(self) -> Command:
        """The command line of a start."""

    async def launch(self, command: Command) -> ChildProcess:
        """Starts its process. Raises `StackError`."""
        return await ChildProcess.start(command)

    @abstractmethod
    async def is_ready(self) -> bool:
        """Asks the server itself; waits for a second or so at most."""

    async def is_recovering(self) -> bool:
        """Whether a running server that isn't ready is still recovering, however long that takes: a killed database
        first reads its logs, and killing it again would only start that anew."""
        return False


async def start(
    service: Service, *, timeout: float = 60, marks: Mapping[str, str] | None = None, say: Say | None = None
) -> ChildProcess:
    """Starts a prepared service and waits until it is ready. Raises `StackError` with the log's last lines when it
    ends, or is neither ready nor recovering for `timeout` seconds; then it is stopped completely. `marks` are added
    to its environment; `say` is called every few seconds during a recovery."""
    command = service.command()
    child = await service.launch(replace(command, environ={**command.environ, **(marks or {})}))
    try:
        await _wait_until_ready(service, child, timeout, say)
    except TimeoutError:
        await child.kill()
        raise StackError(
            f"{service.name} was not ready within {timeout:.0f} s; the end of {service.log}:\n{tail(service.log)}"
        ) from None
    except BaseException:
        await child.kill()
        raise
    return child


async def _wait_until_ready(service: Service, child: ChildProcess, timeout: float, say: Say | None) -> None:
    clock = asyncio.get_running_loop().time
    started = asked = clock()
    async with asyncio.timeout(timeout) as limit:
        # What answers may be somebody else's server, as long as our own has not found its port taken.
        while (
            not await service.is_ready()
            or child.returncode is not None
            or is_taken_by_others(service.host, service.port, group=child.pid)
        ):
            if child.returncode is not None:
                raise StackError(
                    f"{service.name} ended ({child.returncode}) before it was ready; the end of "
                    f"{service.log}:\n{tail(service.log)}"
                )
            if clock() - asked > min(_REPORT_SECONDS, timeout / 3):
                asked = clock()
                if await service.is_recovering():
                    limit.reschedule(clock() + timeout)
                    if say is not None:
                        say(f"{service.name} is still recovering its data ({clock() - started:.0f} s)")
            await asyncio.sleep(_POLL_SECONDS if clock() - started < _SOON_SECONDS else _SLOW_POLL_SECONDS)


def server_environ() -> dict[str, str]:
    """The environment of a server, which takes only the PATH and the time zone from ours. A server that writes to
    its home folder needs another."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": "/nonexistent",
    }
