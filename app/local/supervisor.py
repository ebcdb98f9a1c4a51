"""Keeps the stack's services running: restarts one that ends, and stops all of them at the end."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping

from app.local.errors import StackError
from app.local.ports import PortAllocator
from app.local.processes import ChildProcess
from app.local.screen import Screen
from app.local.services import Service, start

_BACK_OFF_SECONDS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
_HEALTHY_SECONDS = 10.0
"""A service that ran this long failed for a new reason, so it is restarted without delay."""
_START_ATTEMPTS = 3


class Supervisor:
    """The running services, in the order of their start. `changed` is called whenever a process was replaced."""

    def __init__(self, screen: Screen, ports: PortAllocator, *, marks: Mapping[str, str]) -> None:
        self._screen = screen
        self._ports = ports
        self._marks = marks
        self.changed: Callable[[], None] = _nothing
        self._children: dict[str, ChildProcess] = {}
        self._watchers: list[asyncio.Task[None]] = []

    @property
    def processes(self) -> dict[str, list[int]]:
        """The ids of each service's processes, as in stack.json."""
        return {name: [child.pid] for name, child in self._children.items()}

    async def launch(self, service: Service, waits_for: str) -> None:
        """Prepares and starts a service, waits until it is ready, and keeps it running from then on. Raises
        `StackError` when it can't be started."""
        with self._screen.waiting(service.name, waits_for):
            await service.prepare()
            self._children[service.name] = await self._first_start(service)
        self._watchers.append(asyncio.create_task(self._keep_running(service)))

    async def run_forever(self) -> None:
        """Never returns. Raises a watcher's error: without its watcher a service would stay down unnoticed."""
        await asyncio.gather(*self._watchers)
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Stops all services, the last started first: those that serve requests before those that they use."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        children = list(self._children.items())
        own = [child for name, child in children if name in ("api", "worker")]
        servers = [child for name, child in children if name not in ("api", "worker")]
        for group in (own, servers):
            await asyncio.gather(*(child.stop() for child in group))
        self._children.clear()

    async def _first_start(self, service: Service) -> ChildProcess:
        repeated = False
        for _ in range(_START_ATTEMPTS - 1):
            try:
                return await start(service, marks=self._marks, say=self._screen.say)
            except StackError:
                # Another program may take a port between its choice and its use, and may have given it back.
                if service.move(self._ports):
                    self._screen.say(f"{service.name}: its port was taken meanwhile; trying {service.port}")
                elif repeated:
                    raise
                else:
                    repeated = True
        return await start(service, marks=self._marks, say=self._screen.say)

    async def _keep_running(self, service: Service) -> None:
        failures = 0
        while True:
            child = self._children[service.name]
            started = time.monotonic()
            code = await child.wait()
            # Helpers of the dead process may hold its port, or go on working beside its successor.
            await child.kill()
            failures = 0 if time.monotonic() - started > _HEALTHY_SECONDS else failures + 1
            await self._restart(service, _ending(code), failures)

    async def _restart(self, service: Service, why: str, failures: int) -> None:
        while True:
            delay = _BACK_OFF_SECONDS[min(max(failures - 1, 0), len(_BACK_OFF_SECONDS) - 1)]
            when = f" in {delay:g} s" if delay else ""
            self._screen.say(f"{service.name} {why}; starting it again{when}")
            await asyncio.sleep(delay)
            try:
                with self._screen.waiting(f"{service.name} again"):
                    self._children[service.name] = await start(service, marks=self._marks, say=self._screen.say)
            except StackError as error:
                why = f"did not start: {error}"
                failures += 1
            else:
                self.changed()
                return


async def all_of(*steps: Coroutine[object, object, object]) -> None:
    """Runs all concurrently. The first error cancels the others, and is raised when they have ended."""
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _nothing() -> None:
    return


def _ending(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
