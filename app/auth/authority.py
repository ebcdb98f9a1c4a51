"""What a key may do, in each of the ways in which a key is limited, and whether that exceeds what another key may
do."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from app.auth.client_address import parse_networks
from app.auth.scopes import Scope, grants


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """A key's limits. None, and an empty list of networks, mean that there is no such limit."""

    scopes: list[str]
    requests_per_minute: int
    monthly_quota: int | None
    allowed_ips: list[str]
    """CIDR networks, IPv4 or IPv6."""
    inactive_ttl_days: int | None
    expires_at: datetime | None
    team_id: int | None
    """The one team in which the key can do anything; None for all of its user's teams."""
    databases: list[UUID] | None
    """The databases that the key is for; None for all of its teams'."""
    ended_teams: list[int] = []
    """Teams in which the key can do nothing any more: its user has left them since it was made."""

    def is_for(self, team_id: int) -> bool:
        """Whether the key can do anything in that team, if its user is in it."""
        return self.team_id in (None, team_id) and team_id not in self.ended_teams


def excess(asked: Authority, own: Authority) -> str | None:
    """The first field in which `asked` allows anything that `own` doesn't, by the name that the API gives it; None
    where `asked` is no wider in any."""
    exceeded = {
        "permissions": not all(grants(own.scopes, Scope(scope)) for scope in asked.scopes),
        "controls.allowed_ip_list": not _within(asked.allowed_ips, own.allowed_ips),
        "team_id": (own.team_id is not None and asked.team_id != own.team_id)
        or any(asked.is_for(team) for team in own.ended_teams),
        "databases": own.databases is not None
        and (asked.databases is None or not set(asked.databases) <= set(own.databases)),
        "expires_at": _more(asked.expires_at, own.expires_at),
        "controls.requests_per_minute": asked.requests_per_minute > own.requests_per_minute,
        "controls.monthly_quota": _more(asked.monthly_quota, own.monthly_quota),
        "controls.inactive_ttl_days": _more(asked.inactive_ttl_days, own.inactive_ttl_days),
    }
    return next((field for field, is_exceeded in exceeded.items() if is_exceeded), None)


def _more(asked: int | datetime | None, own: int | datetime | None) -> bool:
    if own is None:
        return False
    return asked is None or asked > own  # type: ignore[operator] # both are of the same field


def _within(asked: Sequence[str], own: Sequence[str]) -> bool:
    """Whether each address of the networks of `asked` is in one of `own`."""
    if not own:
        return True
    if not asked:
        return False
    outer4 = [net for net in parse_networks(own) if isinstance(net, ipaddress.IPv4Network)]
    outer6 = [net for net in parse_networks(own) if isinstance(net, ipaddress.IPv6Network)]
    # Neighbouring networks together hold a larger one.
    whole4, whole6 = list(ipaddress.collapse_addresses(outer4)), list(ipaddress.collapse_addresses(outer6))
    return all(
        any(inner.subnet_of(outer) for outer in whole4)
        if isinstance(inner, ipaddress.IPv4Network)
        else any(inner.subnet_of(outer) for outer in whole6)
        for inner in parse_networks(asked)
    )
