"""How many steps of one process work on an engine host at the same time: a host that answers nobody takes none of the
other hosts' places, and a team takes none of the other teams'."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from time import monotonic
from typing import Generic, TypeVar

from app.core.limiter import Limiter, LimitReached
from app.engines.base import HostUnavailable

HOST_SLOTS = 8
"""More than this many CREATE DATABASE together make a PostgreSQL server slower, not faster."""
TEAM_SLOTS = HOST_SLOTS // 2
"""How many of them are for a team's steps whose duration the tenant decides, by the tables and sessions that it has."""
REMOVALS = 2
"""How many of them are for removals: each may take minutes, and nobody waits for it."""
TEAM_REMOVALS = 1
_PATIENCE_SECONDS = 5.0
"""A step takes a fraction of a second: when none has come to its end for so long, waiting is in vain."""

Key = TypeVar("Key", bound=Hashable)
_Team = tuple[int, int | None]
"""A team on a host; None for what is no team's."""


class SlotsTaken(Exception):
    """Steps of the same kind or team have all the slots that they get. No host is to blame."""


class HostSlots:
    """Steps wait for a slot, first come, first served, while those before them come to their ends. Where none does for
    `patience` seconds, nobody waits any longer."""

    def __init__(self, per_host: int = HOST_SLOTS, patience: float = _PATIENCE_SECONDS) -> None:
        self._of_hosts = _Places[int](per_host, patience)
        self._of_teams = _Places[_Team](TEAM_SLOTS, patience)
        self._removals = _Places[int](REMOVALS, patience)
        self._removals_of_teams = _Places[_Team](TEAM_REMOVALS, patience)
        self._patience = patience

    @asynccontextmanager
    async def slot(self, host_id: int) -> AsyncIterator[None]:
        """Holds a slot of the host for the block. Raises `HostUnavailable` when the host is stuck."""
        async with self._of_hosts.place(host_id, lambda: self._stuck(host_id)):
            yield

    @asynccontextmanager
    async def team_slot(self, host_id: int, team_id: int | None) -> AsyncIterator[None]:
        """The same for a step that may take long because of its tenant. A step of no team needs the host's slot alone.
        Raises `SlotsTaken` too."""
        async with AsyncExitStack() as held:
            if team_id is not None:
                of_team = self._of_teams.place((host_id, team_id), _taken("steps of the team"))
                await held.enter_async_context(of_team)
            await held.enter_async_context(self.slot(host_id))
            yield

    @asynccontextmanager
    async def removal_slot(self, host_id: int, team_id: int | None) -> AsyncIterator[None]:
        """The same for a removal. Raises `SlotsTaken` too."""
        async with (
            self._removals_of_teams.place((host_id, team_id), _taken("removals of the team")),
            self._removals.place(host_id, _taken("removals")),
            self.slot(host_id),
        ):
            yield

    def is_busy(self, host_id: int) -> bool:
        """Whether steps are at work on it now."""
        return self._of_hosts.held(host_id) > 0

    def _stuck(self, host_id: int) -> HostUnavailable:
        return HostUnavailable(
            f"the host is stuck: {self._of_hosts.held(host_id)} steps are at work on it, and it has answered none "
            f"of them for {self._patience:.0f} s"
        )


def _taken(what: str) -> Callable[[], SlotsTaken]:
    return lambda: SlotsTaken(f"this worker is at as many {what} on the host as it takes at once")


class _Places(Generic[Key]):
    """Slots for each key, which are waited for while those who have them come to their ends."""

    def __init__(self, per_key: int, patience: float) -> None:
        self._slots = Limiter[Key](per_key)
        self._patience = patience
        self._answered_at: dict[Key, float] = {}
        """When a step last ended otherwise than for want of an answer, or began when none was at work; for the keys
        with steps at work."""

    @asynccontextmanager
    async def place(self, key: Key, refusal: Callable[[], Exception]) -> AsyncIterator[None]:
        """Holds a slot for the block. Raises `refusal` where waiting is in vain."""
        async with AsyncExitStack() as held:
            held.callback(self._forget_if_idle, key)
            await self._enter(held, key, refusal)
            self._answered_at.setdefault(key, monotonic())
            answered = True
            try:
                yield
            except (HostUnavailable, asyncio.CancelledError):
                answered = False
                raise
            finally:
                if answered:
                    self._answered_at[key] = monotonic()

    def held(self, key: Key) -> int:
        return self._slots.held(key)

    async def _enter(self, held: AsyncExitStack, key: Key, refusal: Callable[[], Exception]) -> None:
        while True:
            left = self._answered_at.get(key, monotonic()) + self._patience - monotonic()
            if left <= 0 and not self._slots.has_room(key):
                raise refusal()
            # Who waited in vain waits on, if another's step has ended meanwhile.
            with suppress(LimitReached):
                await held.enter_async_context(self._slots.slot(key, timeout=max(left, 0)))
                return

    def _forget_if_idle(self, key: Key) -> None:
        if not self._slots.held(key):
            self._answered_at.pop(key, None)
