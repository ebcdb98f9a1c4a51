"""How many requests one key, or one client address, has in flight in this process: a bound for those that wait, and for
those whose bodies come slowly, so that they leave room for everybody else."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from app.auth.client_address import Address
from app.core.errors import TooManyInFlight
from app.core.limiter import Limiter

Key = TypeVar("Key", bound=Hashable)


class InFlight:
    """The requests of one process."""

    def __init__(self, *, per_key: int, per_address: int) -> None:
        self._per_key, self._keys = per_key, Limiter[int](per_key)
        self._per_address, self._addresses = per_address, Limiter[Address](per_address)

    @contextmanager
    def of_address(self, address: Address) -> Iterator[None]:
        """For the block. Raises `TooManyInFlight`."""
        _check(self._addresses, address, "This address", self._per_address)
        with self._addresses.slot_now(address):
            yield

    @contextmanager
    def of_key(self, key_id: int) -> Iterator[None]:
        """The same."""
        _check(self._keys, key_id, "This API key", self._per_key)
        with self._keys.slot_now(key_id):
            yield


def _check(limiter: Limiter[Key], key: Key, whose: str, limit: int) -> None:
    if not limiter.has_room(key):
        raise TooManyInFlight(whose, limit)
