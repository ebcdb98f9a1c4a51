"""Which host a new database goes to: a pure decision over what the hosts carry."""

from collections.abc import Iterable

import msgspec


class HostLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A host that may be chosen, with what it carries. Connections are those promised, not those open."""

    id: int
    region: str
    host: str
    port: int
    capacity: int
    connection_capacity: int
    databases: int
    connections: int
    sick: bool = False
    """It failed a moment ago: chosen only when no healthy host has room, and then to wait for it."""

    def has_room(self, connections: int) -> bool:
        """For one more database that may hold this many connections."""
        return self.databases < self.capacity and self.connections + connections <= self.connection_capacity

    def load(self) -> float:
        """0 for an empty host, 1 for a full one, by whichever runs out first."""
        return max(self.databases / self.capacity, self.connections / self.connection_capacity)


def least_loaded(hosts: Iterable[HostLoad], connections: int) -> HostLoad | None:
    """The host with the most room left in proportion to its size, or None when all are full."""
    candidates = [host for host in hosts if host.has_room(connections)]
    return min(candidates, key=lambda host: (host.sick, host.load(), host.id), default=None)
