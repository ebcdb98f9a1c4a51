"""What a request holds until its answer has been sent: its places among those in flight, or those of a stream."""

from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

STATE = "held"
"""The key of `Held` in a request's state."""

Key = TypeVar("Key", bound=Hashable)


class Places(Generic[Key]):
    """Places, at most `per_key` of each key. Nobody waits for a place: that takes `app.core.limiter`, which costs
    several times as much. A key that nobody uses costs no memory. For one event loop."""

    def __init__(self, per_key: int) -> None:
        self.per_key = per_key
        self._taken: dict[Key, int] = {}

    def take(self, key: Key) -> bool:
        """Takes a place, if there is one left; returns whether there was."""
        taken = self._taken.get(key, 0)
        if taken >= self.per_key:
            return False
        self._taken[key] = taken + 1
        return True

    def give_back(self, key: Key) -> None:
        """Gives back a place that was taken."""
        left = self._taken[key] - 1
        if left:
            self._taken[key] = left
        else:
            del self._taken[key]


class Held:
    """What one request holds. Call `release` when it has ended."""

    __slots__ = ("_places", "_stack")

    def __init__(self) -> None:
        self._places: list[tuple[Places[Any], Any]] = []
        self._stack: ExitStack | None = None

    def take(self, places: Places[Key], key: Key) -> bool:
        """Takes a place, if there is one left."""
        if not places.take(key):
            return False
        self._places.append((places, key))
        return True

    @property
    def stack(self) -> ExitStack:
        """The stack for whatever else is held."""
        if self._stack is None:
            self._stack = ExitStack()
        return self._stack

    def give_places_back(self) -> None:
        """Gives back the places: the request is in flight no more, and holds the rest."""
        while self._places:
            places, key = self._places.pop()
            places.give_back(key)

    def release(self) -> None:
        """Gives back everything."""
        self.give_places_back()
        if self._stack is not None:
            self._stack.close()
