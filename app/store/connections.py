"""Connections to our own PostgreSQL that share what the driver would otherwise ask the server for each connection."""

from collections.abc import Set
from types import SimpleNamespace
from typing import Any

import asyncpg

_FIRST_OF_USERS = 16_384
"""Types with lower numbers are PostgreSQL's own (FirstNormalObjectId), the same in every database of every server."""

_known: dict[frozenset[int], Any] = {}


class StoreConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is untyped
    """Shares the driver's look-ups of array types. The driver knows few of them and looks up the others once for each
    connection, which costs the server twice as much as opening the connection. Here one answer serves all.

    The overridden method is private to the driver. If a release renames it, connections are as slow as the driver's
    own, and a test fails.
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
"""Stands for the look-up's statement. Its name says to the driver that the unnamed statement, which it has just
prepared, was not overwritten."""


def is_lost(connection: asyncpg.Connection) -> bool:
    """Whether a connection that was taken from a pool is known to be closed."""
    try:
        closed: bool = connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken the broken connection back by itself
        return True
    return closed
