"""What every part of the stack can do, and how one is brought up: prepare, start, wait until it serves."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from app.local.errors import StackError
from app.local.ports import PortAllocator, is_free
from app.local.processes import ChildProcess, Command, tail

_POLL_SECONDS = 0.05
_SLOW_POLL_SECONDS = 0.5
"""Between polls of a server that didn't come up soon: each leaves a line in its log."""
_SOON_SECONDS = 5.0
_TELL_SECONDS = 10.0

DATABASE_STOP_SECONDS = 60.0
"""A database puts all that it wrote on disk before it ends. Killed over that, it would have to recover from its
log at the next start, which takes longer."""

Say = Callable[[str], None]


class Service(ABC):
    """One server of the stack, listening on a port of the loopback interface."""

    def __init__(self, name: str, port: int, log: Path) -> None:
        self.name = name
        """As in the `processes` of stack.json."""
        self.port = port
        self.log = log

    async def prepare(self) -> None:
        """What must exist before the first start. Repeatable, also after a death half-way."""
        return

    def move(self, ports: PortAllocator) -> bool:
        """Leaves ports that somebody else has taken; says whether there were any."""
        if is_free(self.port):
            return False
        self.port = ports.allocate()
        return True

    @abstractmethod
    def command(self) -> Command:
        """The command line of a start."""

    @abstractmethod
    async def is_ready(self) -> bool:
        """Asks the server itself, and waits for an answer for a second or so at most."""

    async def is_recovering(self) -> bool:
        """Whether a running server that isn't ready shows that it is on its way, however long that takes: a
        database that was killed reads its logs first, and killing it again would only begin that anew."""
        return False


async def start(
    service: Service, *, timeout: float = 60, marks: Mapping[str, str] | None = None, say: Say | None = None
) -> ChildProcess:
    """Starts a prepared service and waits until it serves. Raises `StackError` with the log's tail when it
    dies first, or is neither ready nor recovering for `timeout` seconds; then nothing of it is left running.
    `marks` are added to its environment; `say` is told every few seconds of a recovery."""
    command = service.command()
    child = await ChildProcess.start(replace(command, environ={**command.environ, **(marks or {})}))
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
        while not await service.is_ready() or child.returncode is not None:
            if child.returncode is not None:
                raise StackError(
                    f"{service.name} ended ({child.returncode}) before it was ready; the end of "
                    f"{service.log}:\n{tail(service.log)}"
                )
            if clock() - asked > min(_TELL_SECONDS, timeout / 3):
                asked = clock()
                if await service.is_recovering():
                    limit.reschedule(clock() + timeout)
                    if say is not None:
                        say(f"{service.name} is still recovering its data ({clock() - started:.0f} s)")
            await asyncio.sleep(_POLL_SECONDS if clock() - started < _SOON_SECONDS else _SLOW_POLL_SECONDS)


def server_environ() -> dict[str, str]:
    """The environment of a server that takes nothing from ours but where programs are and what time it is. One that
    writes into its home needs another."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": "/nonexistent",
    }
