"""Who gets how many of a host's connections when they are short: pure.

Every database keeps its floor: its limit, divided by how often each connection of the host may be allocated. What is
left is shared among the teams, and a team's share among its databases, so that a team gets no more by having more
databases; none gets more than it asks for, and what one leaves goes to the others.
"""

from collections.abc import Sequence

import msgspec

HIGH, LOW, FULL = 0.8, 0.6, 0.9
"""Shares of a host's connections. Above the first the host is short of them, until it has been below the second for
`CALM_SECONDS`. Above the third, sessions of databases that have more than their share are ended; below that, only new
ones are refused."""
CALM_SECONDS = 30.0


class Sharer(msgspec.Struct, frozen=True, kw_only=True):
    """A database with open sessions, or that is held."""

    id: int
    team_id: int | None
    limit: int
    floor: int
    sessions: int
    at_most: int | None = None
    """How many connections it gets for now."""

    @property
    def presses(self) -> bool:
        """Whether it uses all that it gets, and would take more: nobody knows how many."""
        return self.at_most is not None and self.sessions >= self.at_most

    @property
    def wants(self) -> int:
        return max(self.limit, self.sessions) if self.presses else self.sessions

    @property
    def kept(self) -> int:
        return min(self.wants, self.floor)

    def settled(self, allotted: int) -> int:
        """How many it gets. The number stays as it is while it is nearly right: each change has to be made on the
        engine."""
        if self.at_most is None:
            return allotted
        enough = not self.presses and allotted >= self.sessions
        return self.at_most if enough or abs(allotted - self.at_most) <= self.at_most // 10 else allotted


def floor_of(limit: int, overcommit: int) -> int:
    """What a database keeps in any case. All floors together fit into the host's connections, if no limit is below
    `overcommit`."""
    return max(1, limit // overcommit)


def allotments(asking: Sequence[Sharer], connections: int) -> dict[int, int]:
    """How many connections each database may have, so that all of them together have `connections`; by id, for those
    that get less than they want, and for those that are held already."""
    left = max(0, connections - sum(one.kept for one in asking))
    teams: dict[int | None, list[Sharer]] = {}
    for one in asking:
        teams.setdefault(one.team_id, []).append(one)
    of_teams = _fair([sum(one.wants - one.kept for one in team) for team in teams.values()], left)
    found: dict[int, int] = {}
    for team, share in zip(teams.values(), of_teams, strict=True):
        of_each = _fair([one.wants - one.kept for one in team], share)
        for one, more in zip(team, of_each, strict=True):
            allotted = max(one.floor, one.kept + more)
            if one.at_most is not None or allotted < one.wants:
                found[one.id] = one.settled(min(allotted, one.limit))
    return found


def _fair(wanted: Sequence[int], available: int) -> list[int]:
    """Max-min fair shares: everybody gets the same, but no more than wanted."""
    shares = [0] * len(wanted)
    waiting = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for done, index in enumerate(waiting):
        shares[index] = min(wanted[index], available // (len(waiting) - done))
        available -= shares[index]
    return shares
