"""Looking for a member of the pool before claiming it, without a lock: for whoever can do without it if it is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from app.pool.claim import READY, Wish
from app.store.session import fetch

Row = TypeVar("Row", bound=msgspec.Struct)

# Any change of a row gives it another xmin, so that who has seen it can tell whether it still is as it was.
FIND = f"""
SELECT m.*, m.xmin AS version, now() AS at, t.name AS team_name, h.host, h.port
FROM databases m JOIN engine_hosts h ON h.id = m.host_id, teams t
WHERE {READY} AND m.connections = $3 AND m.limits_applied >= m.limits_revision
  AND t.id = $4 AND m.id <> ALL ($5::bigint[])
ORDER BY m.position LIMIT 1
"""  # noqa: S608 - our own words


class Found(msgspec.Struct, Generic[Row], frozen=True):
    id: int
    version: int
    """The row's: any change of it changes this."""
    at: datetime
    """The time of the look, by our database's clock."""
    row: Row


class ReadyMembers:
    """The looks of one process."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._found: set[int] = set()

    @asynccontextmanager
    async def look(self, wish: Wish, kind: type[Row]) -> AsyncIterator[Found[Row] | None]:
        """The oldest ready member that has just the connections that are wanted, in force, or None. What claims it
        belongs in the block: no other look of this process finds it meanwhile. `kind` may have columns of `databases`,
        and `team_name`, the wish's, `host` and `port`."""
        async with self._looking:
            found = await self._find(wish, kind)
            if found is not None:
                self._found.add(found.id)
        try:
            yield found
        finally:
            if found is not None:
                self._found.discard(found.id)

    async def _find(self, wish: Wish, kind: type[Row]) -> Found[Row] | None:
        rows = await fetch(FIND, wish.engine, wish.region, wish.connections, wish.team_id, list(self._found))
        if not rows:
            return None
        (row,) = rows
        return Found(row["id"], row["version"], row["at"], msgspec.convert(dict(row), kind))
