"""What every part of the stack can do, and how one is brought up: prepare, start, wait until it serves."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.local.errors import StackError
from app.local.ports import PortAllocator, is_free
from app.local.processes import ChildProcess, Command, tail

_POLL_SECONDS = 0.05


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


async def start(service: Service, *, timeout: float = 60, marks: Mapping[str, str] | None = None) -> ChildProcess:
    """Starts a prepared service and waits until it serves. Raises `StackError` with the log's tail when it
    dies first or isn't ready after `timeout` seconds; then nothing of it is left running.
    `marks` are added to its environment."""
    command = service.command()
    child = await ChildProcess.start(replace(command, environ={**command.environ, **(marks or {})}))
    try:
        async with asyncio.timeout(timeout):
            while not await service.is_ready() or child.returncode is not None:
                if child.returncode is not None:
                    raise StackError(
                        f"{service.name} ended ({child.returncode}) before it was ready; the end of "
                        f"{service.log}:\n{tail(service.log)}"
                    )
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        await child.kill()
        raise StackError(
            f"{service.name} was not ready within {timeout:.0f} s; the end of {service.log}:\n{tail(service.log)}"
        ) from None
    except BaseException:
        await child.kill()
        raise
    return child


def server_environ() -> dict[str, str]:
    """The environment of a server that takes nothing from ours but where programs are and what time it is."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": "/nonexistent",
    }
