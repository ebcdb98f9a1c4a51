"""Limits on the requests in flight in this process, by key or person and by client address. Requests that wait, or
whose bodies arrive slowly, so leave room for others."""

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import TypeVar

from app.core.errors import TooManyInFlight
from app.core.limiter import Limiter

Key = TypeVar("Key", bound=Hashable)


class InFlight:
    """The requests of one process."""

    def __init__(self, *, per_key: int, per_address: int) -> None:
        self._per_key, self._keys = per_key, Limiter[int](per_key)
        self._people = Limiter[int](per_key)
        self._per_address, self._addresses = per_address, Limiter[str](per_address)

    def of_address(self, address: str) -> AbstractContextManager[None]:
        """Counts a request for the block. Raises `TooManyInFlight`."""
        _check(self._addresses, address, "This address", self._per_address)
        return self._addresses.slot_now(address)

    def of_key(self, key_id: int) -> AbstractContextManager[None]:
        """The same for a key."""
        _check(self._keys, key_id, "This API key", self._per_key)
        return self._keys.slot_now(key_id)

    def of_person(self, user_id: int) -> AbstractContextManager[None]:
        """The same for all sessions of a person."""
        _check(self._people, user_id, "A person", self._per_key)
        return self._people.slot_now(user_id)


def _check(limiter: Limiter[Key], key: Key, whose: str, limit: int) -> None:
    if not limiter.has_room(key):
        raise TooManyInFlight(whose, limit)
