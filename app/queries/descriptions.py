"""What this process last read of databases' schemas, for as long as the engine says that it is still true."""

from collections import OrderedDict
from uuid import UUID

from app.engines.querying import SchemaDescription

_MOST_CHARACTERS = 16_000_000
_MOST_OF_ONE = 500_000
"""A schema that is larger is read each time: it would take its megabytes from all others."""


class Descriptions:
    """The stored descriptions; the least recently used one is dropped first."""

    def __init__(self) -> None:
        self._stored: OrderedDict[UUID, tuple[SchemaDescription, int]] = OrderedDict()
        self._characters = 0

    def get(self, database: UUID) -> SchemaDescription | None:
        stored = self._stored.get(database)
        return stored[0] if stored else None

    def keep(self, database: UUID, description: SchemaDescription) -> None:
        known = self._stored.pop(database, None)
        if known is not None and known[0] is description:
            self._stored[database] = known
            return
        self._characters -= known[1] if known else 0
        characters = 1000 + description.characters
        if characters > _MOST_OF_ONE:
            return
        self._stored[database] = description, characters
        self._characters += characters
        while self._characters > _MOST_CHARACTERS:
            _, (_, gone) = self._stored.popitem(last=False)
            self._characters -= gone
