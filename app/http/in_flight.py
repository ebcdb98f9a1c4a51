"""Limits on the requests in flight in this process, by key or person and by client address. So requests that wait, or
whose bodies arrive slowly, leave room for others."""

from app.core.errors import TooManyInFlight
from app.web.held import Held, Key, Places


class InFlight:
    """The requests of one process. Each has its places until its `Held` is released."""

    def __init__(self, *, per_key: int, per_address: int) -> None:
        self._keys = Places[int](per_key)
        self._people = Places[int](per_key)
        self._addresses = Places[str](per_address)

    def enter_address(self, held: Held, address: str) -> None:
        """Counts a request of a client's address. Raises `TooManyInFlight`."""
        _take(held, self._addresses, address, "This address")

    def enter_key(self, held: Held, key_id: int) -> None:
        """The same of a key."""
        _take(held, self._keys, key_id, "This API key")

    def enter_person(self, held: Held, user_id: int) -> None:
        """The same of all sessions of a person."""
        _take(held, self._people, user_id, "A person")


def _take(held: Held, places: Places[Key], key: Key, whose: str) -> None:
    if not held.take(places, key):
        raise TooManyInFlight(whose, places.per_key)
