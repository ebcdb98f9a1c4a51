"""What this process last read of databases' schemas, for as long as the engine says that it is still true."""

from collections import OrderedDict
from uuid import UUID

from app.engines.querying import Description

_MOST_DATABASES = 128
_MOST_TABLES = 500
"""A schema that is larger is read each time: it would take its megabytes from all others."""


class Descriptions:
    """The least recently used one goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[UUID, Description] = OrderedDict()

    def get(self, database: UUID) -> Description | None:
        return self._kept.get(database)

    def keep(self, database: UUID, description: Description) -> None:
        self._kept.pop(database, None)
        if len(description.tables) > _MOST_TABLES:
            return
        self._kept[database] = description
        while len(self._kept) > _MOST_DATABASES:
            self._kept.popitem(last=False)
