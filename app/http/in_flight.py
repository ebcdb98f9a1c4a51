"""How many requests one key, or one client address, has in flight in this process: a bound for those that wait, and for
those whose bodies come slowly, so that they leave room for everybody else."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.auth.client_address import Address
from app.core.errors import TooManyInFlight


class InFlight:
    """Counts of one process."""

    def __init__(self, *, per_key: int, per_address: int) -> None:
        self._per_key = per_key
        self._per_address = per_address
        self._counts: Counter[int | Address] = Counter()

    @contextmanager
    def of_address(self, address: Address) -> Iterator[None]:
        """For the block. Raises `TooManyInFlight`."""
        with self._one(address, "This address", self._per_address):
            yield

    @contextmanager
    def of_key(self, key_id: int) -> Iterator[None]:
        """The same."""
        with self._one(key_id, "This API key", self._per_key):
            yield

    @contextmanager
    def _one(self, counted: int | Address, whose: str, limit: int) -> Iterator[None]:
        if self._counts[counted] >= limit:
            raise TooManyInFlight(whose, limit)
        self._counts[counted] += 1
        try:
            yield
        finally:
            self._counts[counted] -= 1
            if not self._counts[counted]:
                del self._counts[counted]
