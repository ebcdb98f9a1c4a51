"""Looking up names, so that a name server that hangs delays only those who send to its names.

The system's resolver blocks its thread, for half a minute where nothing answers, and can't be broken off. So the
threads are shared out: each party has a few at the same time, and one for each of its names.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from app.core.limiter import Limiter

Resolve = Callable[[str], Awaitable[list[str]]]
"""From a host name to all its addresses. Raises `OSError`."""

_OF_ONE_PARTY = 8
_THREADS = ThreadPoolExecutor(max_workers=256, thread_name_prefix="webhook-lookup")
"""The threads of all parties together: they are only begun where so many lookups are under way."""


async def resolve_by_system(host: str) -> list[str]:
    """Resolves a name as every program of this machine does: by its hosts file and its name servers."""
    loop = asyncio.get_running_loop()
    entries = await loop.run_in_executor(_THREADS, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class _Flight:
    """One lookup, under way or waiting for its slot."""

    def __init__(self) -> None:
        self.waiting = 0
        """How many callers wait for the outcome."""
        self.begun = False
        self.task: asyncio.Task[list[str]] | None = None


class Lookups:
    """Shares `resolve` out among parties."""

    def __init__(self, resolve: Resolve = resolve_by_system) -> None:
        self._resolve = resolve
        self._slots = Limiter[str](_OF_ONE_PARTY)
        self._flights: dict[tuple[str, str], _Flight] = {}
        """By party and host."""

    def __len__(self) -> int:
        """How many lookups are under way or waiting."""
        return len(self._flights)

    async def addresses(self, host: str, party: str) -> list[str]:
        """All addresses of the host; an address stands for itself. Callers set their own time limit: a lookup that has
        begun goes on after it, and whoever asks for the same name meanwhile shares its outcome. Raises `OSError`."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        flight = self._flights.get((party, host))
        if flight is None:
            flight = self._flights[party, host] = _Flight()
            flight.task = asyncio.create_task(self._look_up(flight, party, host))
            flight.task.add_done_callback(_retrieve)
        assert flight.task is not None
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.begun:
                # Nobody wants to know any more, and others of this party wait for the slot.
                self._land(party, host, flight)
                flight.task.cancel()

    async def _look_up(self, flight: _Flight, party: str, host: str) -> list[str]:
        async with self._slots.slot(party):
            flight.begun = True
            try:
                return await self._resolve(host)
            finally:
                self._land(party, host, flight)

    def _land(self, party: str, host: str, flight: _Flight) -> None:
        """Ends the sharing of this lookup: later callers begin another."""
        if self._flights.get((party, host)) is flight:
            del self._flights[party, host]


def _retrieve(task: asyncio.Task[list[str]]) -> None:
    """Retrieves a failure even if everyone has stopped waiting: asyncio complains of one that nobody retrieves."""
    if not task.cancelled():
        task.exception()
