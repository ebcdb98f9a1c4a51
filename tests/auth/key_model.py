"""A model in memory of what keys and people may do and of who may change them, independent of how the service decides
it.

Each limit is the set of what it lets through, of a small world in which these sets differ exactly where the limits do.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import UUID

ADDRESSES = (
    "10.0.0.1",
    "10.0.1.1",
    "10.0.2.1",
    "10.1.0.1",
    "172.16.0.1",
    "192.0.2.1",
    "2001:db8::1",
    "2001:db8:1::1",
)
NETWORKS: tuple[list[str], ...] = (
    [],
    ["10.0.0.0/8"],
    ["10.0.0.0/16", "192.0.2.0/24"],
    ["10.0.0.0/24", "10.0.1.0/24"],
    ["10.0.0.0/23"],
    ["10.0.1.0/24"],
    ["2001:db8::/32", "10.0.0.0/8"],
    ["2001:db8::/48"],
)
SCOPES = ("databases:read", "databases:write", "databases:*", "webhooks:read", "keys:read", "keys:write")
ENDS = (None, datetime(2040, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC))
RATES = (200_000, 100_000)
MONTHS = (None, 2_000_000, 1_000_000)
IDLE_DAYS = (None, 20, 10)

Limits = dict[str, Any]
"""By the names of `Authority`."""


ROLES = ("viewer", "member", "admin", "owner")
MAY = {
    "viewer": {"databases:read", "webhooks:read", "keys:read"},
    "member": {"databases:read", "databases:write", "webhooks:read", "keys:read", "keys:write"},
    "admin": {"databases:read", "databases:write", "webhooks:read", "keys:read", "keys:write", "teams:write"},
    "owner": {"databases:read", "databases:write", "webhooks:read", "keys:read", "keys:write", "teams:write"},
}
"""What each role may do in a team, of what chains try."""
GIVES = {"viewer": set(), "member": set(), "admin": set(ROLES[:3]), "owner": set(ROLES)}
"""The roles that each gives to others, and takes from them."""


@dataclass
class World:
    teams: list[int]
    databases: dict[UUID, int]
    """Each with its team."""


def allowed(limits: Limits, world: World) -> tuple[frozenset[Any], ...]:
    """What each limit lets through."""
    bound = frozenset([limits["team_id"]] if limits["team_id"] else [*world.teams, "any"])
    return (
        frozenset(limits["scopes"]) | (frozenset(SCOPES[:3]) if "databases:*" in limits["scopes"] else frozenset()),
        frozenset(addresses(limits["allowed_ips"])),
        bound,
        bound - frozenset(limits["ended_teams"]),
        frozenset(limits["databases"] if limits["databases"] is not None else [*world.databases, "any"]),
        _up_to(ENDS, limits["expires_at"]),
        frozenset(rate for rate in RATES if rate <= limits["requests_per_minute"]),
        _up_to(MONTHS, limits["monthly_quota"]),
        _up_to(IDLE_DAYS, limits["inactive_ttl_days"]),
    )


def is_for(limits: Limits, team: int) -> bool:
    return limits["team_id"] in (None, team) and team not in limits["ended_teams"]


def addresses(networks: list[str]) -> list[str]:
    nets = [ip_network(network) for network in networks]
    return [one for one in ADDRESSES if not nets or any(ip_address(one) in net for net in nets)]


def _up_to(values: tuple[Any, ...], limit: Any) -> frozenset[Any]:
    """None is no limit, the most of all."""
    return frozenset(values if limit is None else [one for one in values if one is not None and one <= limit])


def within(inner: Limits, outer: Limits, world: World) -> bool:
    pairs = zip(allowed(inner, world), allowed(outer, world), strict=True)
    return all(one <= other for one, other in pairs)


@dataclass
class ModelKey:
    id: int
    user: int
    limits: Limits
    texts: list[str]
    """Those that work: the present one, and before it the one that it replaced."""
    minted_by: int | None = None
    revoked: bool = False


@dataclass
class ModelInvitation:
    token: str
    team: int
    role: str
    by: int
    only_for: int | None = None
    """The one person with the address that it was made for."""
    state: str = "open"
    """`open`, `accepted` or `gone`."""


@dataclass
class Model:
    world: World
    keys: dict[int, ModelKey] = field(default_factory=dict)
    places: dict[int, dict[int, str]] = field(default_factory=dict)
    """Of each person, the teams with the role there, in the order of joining."""
    invitations: list[ModelInvitation] = field(default_factory=list)
    given: list[tuple[int, Limits]] = field(default_factory=list)
    """What operators gave, to which user. What was given before its user left a team is given without that team."""

    # What keys reach

    def reach(self, key: ModelKey) -> dict[int, str]:
        """The teams in which the key does anything, with its user's roles."""
        return {team: role for team, role in self.places[key.user].items() if is_for(key.limits, team)}

    def admits(self, key: ModelKey) -> bool:
        return not key.revoked and (key.limits["team_id"] is None or bool(self.reach(key)))

    def may_do(self, key: ModelKey, scope: str) -> set[int]:
        """The teams in which a program with this key may do what needs that scope."""
        if scope not in allowed(key.limits, self.world)[0]:
            return set()
        return {team for team, role in self.reach(key).items() if scope in MAY[role]}

    def is_given(self, key: ModelKey) -> bool:
        """Whether an operator gave its user all that the key may do, in one key."""
        return any(user == key.user and within(key.limits, limits, self.world) for user, limits in self.given)

    # Keys of the same person

    def manages(self, one: ModelKey, other: ModelKey) -> bool:
        own, its = one.limits, other.limits
        return one.id == other.id or (
            one.user == other.user
            and own["team_id"] in (None, its["team_id"])
            and (
                own["databases"] is None
                or (its["databases"] is not None and set(its["databases"]) <= set(own["databases"]))
            )
            and not any(is_for(its, team) for team in own["ended_teams"])
        )

    def may_mint(self, by: ModelKey, wanted: Limits) -> bool:
        return self._real(by, by.limits, wanted) and within(wanted, by.limits, self.world)

    def may_change(self, by: ModelKey, target: ModelKey, wanted: Limits) -> bool:
        if target.revoked or not self.manages(by, target) or not self._real(by, target.limits, wanted):
            return False
        return within(wanted, target.limits, self.world) or within(wanted, by.limits, self.world)

    def may_rotate(self, by: ModelKey, target: ModelKey) -> bool:
        if target.revoked or not self.manages(by, target):
            return False
        return by.id == target.id or within(target.limits, by.limits, self.world)

    def revoke(self, target: ModelKey, *, minted: bool) -> None:
        target.revoked = True
        if minted:
            for child in self.children(target):
                self.revoke(child, minted=True)

    def children(self, key: ModelKey) -> list[ModelKey]:
        return [one for one in self.keys.values() if one.minted_by == key.id]

    def _real(self, by: ModelKey, present: Limits, wanted: Limits) -> bool:
        """The key is to be for a team in which its user mints, and databases that are new are ones that the asking key
        reaches, of a team that the key is to be for."""
        reach = self.reach(by)
        concerned = reach if wanted["team_id"] is None else {wanted["team_id"]: reach.get(wanted["team_id"], "viewer")}
        if not any("keys:write" in MAY[role] for role in concerned.values()):
            return False
        new = set(wanted["databases"] or ()) - set(present["databases"] or ())
        return all(
            self.world.databases[one] in (reach if wanted["team_id"] is None else [wanted["team_id"]])
            and (by.limits["databases"] is None or one in by.limits["databases"])
            for one in new
        )

    # Keys of others

    def administers(self, by: ModelKey, target: ModelKey) -> list[int]:
        """The teams for which `by` may end somebody else's key."""
        if by.user == target.user or by.limits["databases"] is not None:
            return []
        mine = [team for team, role in self.reach(by).items() if role in ("admin", "owner")]
        return [team for team in mine if team in self.reach(target)]

    def end(self, by: ModelKey, target: ModelKey, *, minted: bool) -> None:
        if minted:
            for child in self.children(target):
                self.end(by, child, minted=True)
        teams = self.administers(by, target)
        if target.revoked or not teams:
            return
        if target.limits["team_id"] is not None:
            target.revoked = True
        else:
            self._end(target.limits, teams)

    @staticmethod
    def _end(limits: Limits, teams: list[int]) -> None:
        limits["ended_teams"] = sorted({*limits["ended_teams"], *teams})

    # People

    def may_invite(self, by: ModelKey, team: int, role: str) -> bool:
        return role in GIVES[self.reach(by).get(team, "viewer")]

    def may_accept(self, by: ModelKey, invitation: ModelInvitation) -> bool:
        narrowed = by.limits["team_id"] is not None or by.limits["databases"] is not None
        meant = invitation.only_for in (None, by.user)
        return not narrowed and meant and invitation.state == "open" and invitation.team not in self.places[by.user]

    def may_set_role(self, by: ModelKey, team: int, user: int, role: str) -> bool:
        present, gives = self.places[user].get(team), GIVES[self.reach(by).get(team, "viewer")]
        return present is not None and role in gives and present in gives and self._keeps_owner(team, user, role)

    def may_remove(self, by: ModelKey, team: int, user: int) -> bool:
        present = self.places[user].get(team)
        if present is None or team not in self.reach(by) or not self._keeps_owner(team, user, None):
            return False
        return by.user == user or present in GIVES[self.reach(by)[team]]

    def set_role(self, team: int, user: int, role: str) -> None:
        self.places[user][team] = role
        self._withdraw(team, user, GIVES[role])

    def remove(self, team: int, user: int) -> None:
        del self.places[user][team]
        self._withdraw(team, user, set())
        for limits in [key.limits for key in self.keys.values() if key.user == user]:
            if limits["team_id"] in (None, team):
                self._end(limits, [team])
        for person, limits in self.given:
            if person == user:
                self._end(limits, [team])

    def _withdraw(self, team: int, user: int, still: set[str]) -> None:
        for one in self.invitations:
            if (one.team, one.by, one.state) == (team, user, "open") and one.role not in still:
                one.state = "gone"

    def _keeps_owner(self, team: int, user: int, role: str | None) -> bool:
        if self.places[user].get(team) != "owner" or role == "owner":
            return True
        return any(places.get(team) == "owner" for person, places in self.places.items() if person != user)
