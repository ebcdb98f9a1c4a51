"""Connections to our own PostgreSQL that learn from each other what the driver would ask the server in each."""

from collections.abc import Set
from types import SimpleNamespace
from typing import Any

import asyncpg

_FIRST_OF_USERS = 16_384
"""Types with lower numbers are PostgreSQL's own (FirstNormalObjectId): the same in every database of every server."""

_known: dict[frozenset[int], Any] = {}


class StoreConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is untyped
    """The driver knows few types of arrays, and looks all others up once in each connection, which costs the server
    twice what opening the connection does. Here the first one's answer serves all.

    The method is the driver's own and private: should a release rename it, connections are as slow as the driver's, and
    a test says so.
    """

    async def _introspect_types(self, typeoids: Set[int], timeout: float | None) -> Any:
        types = frozenset(typeoids)
        if types in _known:
            return _known[types], _NOTHING_ASKED
        rows, statement = await super()._introspect_types(typeoids, timeout)
        if max(types) < _FIRST_OF_USERS:
            _known[types] = rows
        return rows, statement


_NOTHING_ASKED = SimpleNamespace(name="none")
"""Stands for the statement of a look-up. That it has a name tells the driver that the unnamed statement which it has
just prepared was not overwritten."""
