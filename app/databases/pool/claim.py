"""Which ready member of the warm pool a create takes, and the refill that follows. The engine is not asked."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from time import monotonic
from typing import Literal

import msgspec
from prometheus_client import Counter, Histogram

from app.contracts.base import Engine
from app.core.context import in_nobodys_name
from app.core.debounce import Debouncer
from app.core.metrics.counters import POOL_CLAIM_SECONDS, POOL_CLAIMS
from app.databases.ownership import MemberKind, ReadyMember, find_ready, has_ready_with_fewer, lock_ready
from app.hosts.loads import rooms
from app.store.session import execute

_PREFETCH_SECONDS = 0.04
"""How long after a claim the next member is read: out of the way of the claim's answer."""
_LIFETIME_SECONDS = 300.0
"""What was read of a member longer ago is likely to be no longer true."""
_CHOICE = 4
"""The next member is one of so many: several processes that all remembered the oldest would take it from each other."""
CHANNEL = "headwater_pool"
"""Notifications that a member was claimed, or that a pool is to have another size."""
_NOTICE_SECONDS = 0.25
"""Claims within this time are one notice."""


async def lock_member(kind: MemberKind) -> ReadyMember | None:
    """A member on a host with room for its connections, locked until the end of the transaction; None when there is
    none. It may allow another number of connections."""
    member = await lock_ready(kind, {})
    if member is None and await has_ready_with_fewer(kind):
        member = await lock_ready(kind, await rooms(kind.engine, kind.region))
    return member


class _Prefetched(msgspec.Struct, frozen=True):
    member: ReadyMember
    until: float


class ReadyMembers:
    """The members that one process has read for its next creates, one for each kind, so that most creates wait for one
    round trip less (decision 17). Nothing is locked: `hold` finds out whether another process took it."""

    def __init__(
        self,
        *,
        prefetch_seconds: float = _PREFETCH_SECONDS,
        lifetime_seconds: float = _LIFETIME_SECONDS,
        choice: int = _CHOICE,
    ) -> None:
        self._lifetime_seconds = lifetime_seconds
        self._choice = choice
        self._reading = asyncio.Lock()
        self._reserved: set[int] = set()
        self._prefetched: dict[MemberKind, _Prefetched] = {}
        self._kinds: set[MemberKind] = set()
        self._prefetching = Debouncer(prefetch_seconds, self.prefetch_now, lost="pool_prefetch_lost")

    @asynccontextmanager
    async def reserved(self, kind: MemberKind, *, fresh: bool) -> AsyncIterator[ReadyMember | None]:
        """A member that allows exactly the kind's number of connections, with that limit in force, or None. With
        `fresh` it is read now, otherwise it is the one that was read after the last claim. No other create of this
        process gets it during the block."""
        member = await self._read(kind) if fresh else self._take_prefetched(kind)
        try:
            yield member
        finally:
            if member is not None:
                self._reserved.discard(member.id)

    def prefetch(self, kind: MemberKind) -> None:
        """Reads a member for the next create of this kind, in a moment."""
        self._kinds.add(kind)
        self._prefetching.schedule()

    async def prefetch_now(self) -> None:
        """Reads a member for each kind that was asked for since the last time."""
        while self._kinds:
            kind = self._kinds.pop()
            async with self._reading:
                known = self._reserved | {one.member.id for one in self._prefetched.values()}
                if members := await find_ready(kind, without=list(known), most=self._choice):
                    # Which of them doesn't matter to anybody: no secret.
                    self._prefetched[kind] = _Prefetched(random.choice(members), monotonic() + self._lifetime_seconds)  # noqa: S311

    async def close(self) -> None:
        """Ends the reading in the background."""
        await self._prefetching.close()

    async def _read(self, kind: MemberKind) -> ReadyMember | None:
        async with self._reading:
            # Everybody's creates wait for the lock: it isn't held for as long as one user waits for their share.
            with in_nobodys_name():
                members = await find_ready(kind, without=list(self._reserved), most=1)
            for member in members:
                self._reserved.add(member.id)
                self._prefetched = {of: one for of, one in self._prefetched.items() if one.member.id != member.id}
                return member
        return None

    def _take_prefetched(self, kind: MemberKind) -> ReadyMember | None:
        prefetched = self._prefetched.pop(kind, None)
        if prefetched is None or prefetched.until < monotonic():
            return None
        self._reserved.add(prefetched.member.id)
        return prefetched.member


def count_claim(engine: Engine, region: str, outcome: Literal["hit", "miss"], seconds: float) -> None:
    """Counts for the metrics how long, in seconds, a create that went to this region asked the pool."""
    claims, durations = _series(engine, region, outcome)
    claims.inc()
    durations.observe(seconds)


@cache
def _series(engine: Engine, region: str, outcome: str) -> tuple[Counter, Histogram]:
    """The metrics with their labels, remembered: looking labels up costs more than counting does."""
    return POOL_CLAIMS.labels(engine.value, region, outcome), POOL_CLAIM_SECONDS.labels(engine.value, outcome)


async def notify_refill() -> None:
    """Has the pools refilled, with the commit. It is a hint, whose loss costs the wait for the next scheduled run."""
    await execute("SELECT pg_notify($1, '')", CHANNEL)


class RefillNotices:
    """Sends a notice after the claims of one process, one for several claims. No request waits for it."""

    def __init__(self) -> None:
        self._debouncer = Debouncer(_NOTICE_SECONDS, notify_refill, lost="pool_notice_lost")

    def send_soon(self) -> None:
        self._debouncer.schedule()

    async def close(self) -> None:
        """Sends what is left to send."""
        await self._debouncer.close()
