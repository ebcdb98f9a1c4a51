"""Looking for a member of the pool before claiming it, without a lock: for whoever can do without it if it is lost. The
look for the next claim comes after the last one, so that most creates wait for none."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Generic, TypeVar

import msgspec

from app.contracts.base import Engine
from app.core.debounce import Debouncer
from app.pool.claim import READY, Wish
from app.store.session import fetch

Row = TypeVar("Row", bound=msgspec.Struct)

_AHEAD_SECONDS = 0.04
"""After a claim: out of the way of its answer."""
_KEPT_SECONDS = 300.0
"""What is known of a member for longer is likely to be no longer true."""
_CHOICE = 4
"""The next member is one of so many: several processes that all kept the oldest would take it from each other."""

# Any change of a row gives it another xmin, so that who has seen it can tell whether it still is as it was.
FIND = f"""
SELECT m.*, m.xmin AS version, h.xmin AS host_version, NULL AS team_name, h.host, h.port
FROM databases m JOIN engine_hosts h ON h.id = m.host_id
WHERE {READY} AND m.connections = $3 AND m.limits_applied >= m.limits_revision AND m.id <> ALL ($4::bigint[])
ORDER BY m.position LIMIT $5
"""  # noqa: S608 - our own words


class Found(msgspec.Struct, Generic[Row], frozen=True):
    id: int
    version: int
    """The row's: any change of it changes this."""
    host_version: int
    """Its host's row's."""
    row: Row


class _Sort(msgspec.Struct, frozen=True):
    """Wishes of one sort are served by the same members. There are few of them for which there ever is one."""

    engine: Engine
    region: str | None
    connections: int


class _Kept(msgspec.Struct, Generic[Row], frozen=True):
    found: Found[Row]
    until: float


class ReadyMembers(Generic[Row]):
    """The looks of one process. What it keeps in memory holds nothing: whoever else wants that member gets it."""

    def __init__(self, kind: type[Row]) -> None:
        """`kind` may have columns of `databases`, `host` and `port`, and `team_name`, of which there is none."""
        self._kind = kind
        self._looking = asyncio.Lock()
        self._claiming: set[int] = set()
        self._kept: dict[_Sort, _Kept[Row]] = {}
        self._wanted: set[_Sort] = set()
        self._ahead = Debouncer(_AHEAD_SECONDS, self._look_ahead, lost="pool_look_ahead_lost")

    @asynccontextmanager
    async def look(self, wish: Wish, *, afresh: bool) -> AsyncIterator[Found[Row] | None]:
        """A ready member that has just the connections that are wanted, in force, or None: the oldest by a look of now,
        or else what was found after the last claim, which may have changed since. What claims it belongs in the block:
        no other look of this process finds it meanwhile."""
        sort = _Sort(wish.engine, wish.region, wish.connections)
        found = await self._look(sort) if afresh else self._take_kept(sort)
        try:
            yield found
        finally:
            if found is not None:
                self._claiming.discard(found.id)

    def look_ahead_soon(self, wish: Wish) -> None:
        """For the next wish of this sort."""
        self._wanted.add(_Sort(wish.engine, wish.region, wish.connections))
        self._ahead.soon()

    async def close(self) -> None:
        """Ends the looks ahead."""
        await self._ahead.close()

    async def _look(self, sort: _Sort) -> Found[Row] | None:
        async with self._looking:
            for found in await self._find(sort, self._claiming, 1):
                self._claiming.add(found.id)
                self._kept = {of: kept for of, kept in self._kept.items() if kept.found.id != found.id}
                return found
        return None

    def _take_kept(self, sort: _Sort) -> Found[Row] | None:
        kept = self._kept.pop(sort, None)
        if kept is None or kept.until < monotonic():
            return None
        self._claiming.add(kept.found.id)
        return kept.found

    async def _look_ahead(self) -> None:
        while self._wanted:
            sort = self._wanted.pop()
            async with self._looking:
                known = self._claiming | {kept.found.id for kept in self._kept.values()}
                if found := await self._find(sort, known, _CHOICE):
                    # Which of them doesn't matter to anybody: no secret.
                    self._kept[sort] = _Kept(random.choice(found), monotonic() + _KEPT_SECONDS)  # noqa: S311

    async def _find(self, sort: _Sort, without: set[int], most: int) -> list[Found[Row]]:
        rows = await fetch(FIND, sort.engine, sort.region, sort.connections, list(without), most)
        return [
            Found(row["id"], row["version"], row["host_version"], msgspec.convert(dict(row), self._kind))
            for row in rows
        ]
