"""A model in memory of what keys may do and of who may change them, independent of how the service decides it.

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


@dataclass
class World:
    teams: list[int]
    databases: dict[UUID, int]
    """Each with its team."""


def allowed(limits: Limits, world: World) -> tuple[frozenset[Any], ...]:
    """What each limit lets through."""
    return (
        frozenset(limits["scopes"]) | (frozenset(SCOPES[:3]) if "databases:*" in limits["scopes"] else frozenset()),
        frozenset(addresses(limits["allowed_ips"])),
        frozenset([limits["team_id"]] if limits["team_id"] else [*world.teams, "any"]),
        frozenset(limits["databases"] if limits["databases"] is not None else [*world.databases, "any"]),
        _up_to(ENDS, limits["expires_at"]),
        frozenset(rate for rate in RATES if rate <= limits["requests_per_minute"]),
        _up_to(MONTHS, limits["monthly_quota"]),
        _up_to(IDLE_DAYS, limits["inactive_ttl_days"]),
    )


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
class Model:
    world: World
    keys: dict[int, ModelKey] = field(default_factory=dict)
    given: list[tuple[int, Limits]] = field(default_factory=list)
    """What operators gave, to which user."""

    def manages(self, one: ModelKey, other: ModelKey) -> bool:
        own, its = one.limits, other.limits
        return one.id == other.id or (
            one.user == other.user
            and own["team_id"] in (None, its["team_id"])
            and (
                own["databases"] is None
                or (its["databases"] is not None and set(its["databases"]) <= set(own["databases"]))
            )
        )

    def may_mint(self, by: ModelKey, wanted: Limits) -> bool:
        return not by.revoked and self._real(by, by.limits, wanted) and within(wanted, by.limits, self.world)

    def may_change(self, by: ModelKey, target: ModelKey, wanted: Limits) -> bool:
        if by.revoked or target.revoked or not self.manages(by, target) or not self._real(by, target.limits, wanted):
            return False
        return within(wanted, target.limits, self.world) or within(wanted, by.limits, self.world)

    def may_rotate(self, by: ModelKey, target: ModelKey) -> bool:
        if by.revoked or target.revoked or not self.manages(by, target):
            return False
        return by.id == target.id or within(target.limits, by.limits, self.world)

    def may_revoke(self, by: ModelKey, target: ModelKey) -> bool:
        return not by.revoked and self.manages(by, target)

    def revoke(self, target: ModelKey, *, minted: bool) -> None:
        target.revoked = True
        if minted:
            for child in [key for key in self.keys.values() if key.minted_by == target.id]:
                self.revoke(child, minted=True)

    def is_given(self, key: ModelKey) -> bool:
        """Whether an operator gave its user all that the key may do, in one key."""
        return any(user == key.user and within(key.limits, limits, self.world) for user, limits in self.given)

    def _real(self, by: ModelKey, present: Limits, wanted: Limits) -> bool:
        """Databases that are new are ones that the asking key reaches, of a team that the key is to be for."""
        new = set(wanted["databases"] or ()) - set(present["databases"] or ())
        team = wanted["team_id"] or by.limits["team_id"]
        return all(
            team in (None, self.world.databases[one])
            and (by.limits["databases"] is None or one in by.limits["databases"])
            for one in new
        )
