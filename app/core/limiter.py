"""Limits how many hold something at the same time in this process: for each key, and altogether."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractContextManager, asynccontextmanager
from time import monotonic
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class LimitReached(Exception):
    """No slot is free: now, or within the time that the caller waits."""


class Limiter(Generic[Key]):
    """At most `per_key` slots of each key, and `total` of all keys together.

    Those who wait for the same key are served in the order of arrival; the keys take turns, so that one with a long
    queue gets no more than one with a short queue. A slot that is released goes straight to one who waits for it:
    nobody who comes later takes it. A key that nobody uses costs no memory. For one event loop; not thread-safe.
    """

    def __init__(self, per_key: int, total: int | None = None) -> None:
        self._per_key = per_key
        self._total = total
        self._held = 0
        """The number of slots that are taken, of all keys together."""
        self._lanes: dict[Key, _Lane] = {}
        """The lanes of the keys that are in use."""
        self._next: OrderedDict[Key, None] = OrderedDict()
        """The keys for which somebody waits although a slot of their own is free: they wait for one of the total, in
        this order."""

    def __len__(self) -> int:
        """How many keys are in use."""
        return len(self._lanes)

    def has_room(self, key: Key) -> bool:
        """Whether a slot of the key is free now."""
        lane = self._lanes.get(key)
        return (lane is None or len(lane.holders) < self._per_key) and self._total_has_room

    def held(self, key: Key) -> int:
        """How many slots of the key are taken."""
        lane = self._lanes.get(key)
        return 0 if lane is None else len(lane.holders)

    def longest_held(self, key: Key) -> float:
        """Seconds for which the oldest of the key's slots has been taken; 0 where none is."""
        lane = self._lanes.get(key)
        return monotonic() - next(iter(lane.holders.values())) if lane is not None and lane.holders else 0.0

    def slot_now(self, key: Key) -> AbstractContextManager[None]:
        """A slot for the block. Entering the block raises `LimitReached` when none is free."""
        return _SlotNow(self, key)

    @asynccontextmanager
    async def slot(self, key: Key, *, timeout: float | None = None) -> AsyncIterator[None]:
        """A slot for the block. Waits for one, for `timeout` seconds at most; then raises `LimitReached`."""
        holder: object
        if self.has_room(key):
            holder = object()
            self._hold(key, self._lane(key), holder)
        else:
            holder = await self._wait(key, timeout)
        try:
            yield
        finally:
            self._release(key, holder)

    @property
    def _total_has_room(self) -> bool:
        return self._total is None or self._held < self._total

    def _lane(self, key: Key) -> "_Lane":
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        return lane

    async def _wait(self, key: Key, timeout: float | None) -> object:
        """Waits for a slot that another caller releases, and returns its holder. A caller that is cancelled, or whose
        time is over, gives a slot back that it was handed in the same moment."""
        lane, waiter = self._lane(key), asyncio.get_running_loop().create_future()
        lane.waiting[waiter] = None
        self._note_change(key, lane)
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except BaseException as fault:
            if waiter in lane.holders:
                self._release(key, waiter)
            elif waiter in lane.waiting:
                del lane.waiting[waiter]
                self._note_change(key, lane)
            if isinstance(fault, TimeoutError):
                raise LimitReached from None
            raise
        return waiter

    def _take(self, key: Key, holder: object) -> None:
        if not self.has_room(key):
            raise LimitReached
        self._hold(key, self._lane(key), holder)

    def _hold(self, key: Key, lane: "_Lane", holder: object) -> None:
        lane.holders[holder] = monotonic()
        self._held += 1

    def _release(self, key: Key, holder: object) -> None:
        lane = self._lanes[key]
        del lane.holders[holder]
        self._held -= 1
        self._note_change(key, lane)
        self._hand_over()

    def _hand_over(self) -> None:
        """Gives slots to those who wait, as long as somebody waits and a slot is free."""
        while self._next and self._total_has_room:
            # A key that stays in `_next` goes to its end.
            key, _ = self._next.popitem(last=False)
            lane = self._lanes[key]
            waiter, _ = lane.waiting.popitem(last=False)
            if not waiter.done():  # it may have been cancelled, and its task not have run since
                self._hold(key, lane, waiter)
                waiter.set_result(None)
            self._note_change(key, lane)

    def _note_change(self, key: Key, lane: "_Lane") -> None:
        if not lane.waiting or len(lane.holders) >= self._per_key:
            self._next.pop(key, None)
        elif key not in self._next:
            self._next[key] = None
        if not lane.waiting and not lane.holders:
            del self._lanes[key]


class _SlotNow(Generic[Key]):
    """A class, because a generator takes three times as long."""

    __slots__ = ("_key", "_limiter")

    def __init__(self, limiter: Limiter[Key], key: Key) -> None:
        self._limiter = limiter
        self._key = key

    def __enter__(self) -> None:
        self._limiter._take(self._key, self)

    def __exit__(self, *_: object) -> None:
        self._limiter._release(self._key, self)


class _Lane:
    """One key's slots."""

    __slots__ = ("holders", "waiting")

    def __init__(self) -> None:
        self.holders: dict[object, float] = {}
        """When each holder got its slot, by the clock of `monotonic`; the oldest first."""
        self.waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        """Those who wait, in the order of arrival."""
