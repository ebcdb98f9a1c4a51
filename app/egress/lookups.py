"""Looking up names, so that a name server that hangs holds up nobody but those who send to its names.

The system's resolver blocks its thread, for half a minute where nothing answers, and can't be broken off. So the
threads are shared out: each party has a few at once, and asks for each of its names once at a time.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

Resolve = Callable[[str], Awaitable[list[str]]]
"""From a host name to all its addresses. Raises `OSError`."""

_OF_ONE_PARTY = 8
_THREADS = ThreadPoolExecutor(max_workers=256, thread_name_prefix="webhook-lookup")
"""Of all parties together: they are only begun where so many lookups are under way."""


async def resolve_by_system(host: str) -> list[str]:
    """As every program of this machine does: by its hosts file and its name servers."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(_THREADS, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Flight:
    """One lookup, under way or waiting for its place."""

    def __init__(self) -> None:
        self.waiting = 0
        """How many want to know."""
        self.begun = False
        self.task: asyncio.Task[list[str]] | None = None


class _Lane:
    """One party's lookups under way, and its places."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_OF_ONE_PARTY)
        self.flights: dict[str, _Flight] = {}


class Lookups:
    """Shares `resolve` out among parties."""

    def __init__(self, resolve: Resolve = resolve_by_system) -> None:
        self._resolve = resolve
        self._lanes: dict[str, _Lane] = {}

    async def addresses(self, host: str, party: str) -> list[str]:
        """All addresses of the host; an address stands for itself. Callers set their own time limit: a lookup that has
        begun goes on after it, and whoever asks for the same name meanwhile shares its outcome. Raises `OSError`."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        lane = self._lanes.setdefault(party, _Lane())
        flight = lane.flights.get(host)
        if flight is None:
            flight = lane.flights[host] = _Flight()
            flight.task = asyncio.create_task(self._look_up(lane, flight, party, host))
            flight.task.add_done_callback(_hear)
        assert flight.task is not None
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.begun:
                # Nobody wants to know any more, and others of this party wait for the place.
                self._land(party, host, flight)
                flight.task.cancel()

    async def _look_up(self, lane: _Lane, flight: _Flight, party: str, host: str) -> list[str]:
        async with lane.places:
            flight.begun = True
            try:
                return await self._resolve(host)
            finally:
                self._land(party, host, flight)

    def _land(self, party: str, host: str, flight: _Flight) -> None:
        """Who asks from now on begins anew."""
        lane = self._lanes.get(party)
        if lane is None or lane.flights.get(host) is not flight:
            return
        del lane.flights[host]
        if not lane.flights:
            del self._lanes[party]


def _hear(task: asyncio.Task[list[str]]) -> None:
    """Of a failure, though everyone may have stopped waiting."""
    if not task.cancelled():
        task.exception()
