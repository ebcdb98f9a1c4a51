"""Choosing the host of a new database: a pure function of the hosts' load."""

from collections.abc import Iterable

import msgspec


class HostLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A host that may be chosen, with its load. Connections are the sum of the databases' limits, not the open ones.
    `connection_room` is what that sum may be: the server's own connections, each allocated several times."""

    id: int
    region: str
    host: str
    port: int
    capacity: int
    connection_room: int
    databases: int
    connections: int
    sick: bool = False
    """It failed a moment ago. It is chosen only when no healthy host has room; the database then waits for it."""

    def has_room(self, connections: int) -> bool:
        """Whether there is room for one more database with this connection limit."""
        return self.databases < self.capacity and self.connections + connections <= self.connection_room

    def load(self) -> float:
        """From 0 for an empty host to 1 for a full one, by whichever resource is scarcer."""
        return max(self.databases / self.capacity, self.connections / self.connection_room)


def least_loaded(hosts: Iterable[HostLoad], connections: int) -> HostLoad | None:
    """The host with the most free room in proportion to its size; None when all are full."""
    candidates = [host for host in hosts if host.has_room(connections)]
    return min(candidates, key=lambda host: (host.sick, host.load(), host.id), default=None)
