"""What a pool lacks and what is too much in it: a pure decision over its members."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from app.contracts.base import DatabaseStatus
from app.databases.pooled import PoolMember


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    missing: int
    """How many members are to be begun."""
    making: int
    """How many members are on their way."""
    ready: int
    discard: list[PoolMember]
    aged: list[PoolMember]
    """Ready members that are to be replaced, oldest first. They stay until others are ready, so that the pool never
    runs dry."""


def decide(members: Sequence[PoolMember], size: int, connections: int, older_than: datetime) -> Decision:
    """Decides for a pool of `size` members. `connections` is what a member is made with nowadays; members with another
    number count as aged.

    A sick host's members neither count nor go: others take their place, and when the host is well again the oldest of
    all are too many.
    """
    active = [member for member in members if member.status is DatabaseStatus.ACTIVE]
    making = [one for one in members if one.status is DatabaseStatus.PROVISIONING and not one.draining]
    usable = sorted((one for one in active if not one.draining and not one.sick), key=_age)
    aged = [one for one in usable if _is_aged(one, connections, older_than)]
    fresh = [one for one in usable if not _is_aged(one, connections, older_than)]
    by_turn = [*aged, *fresh]
    return Decision(
        missing=max(0, size - len(fresh) - len(making)),
        making=len(making),
        ready=len(usable),
        discard=[*(one for one in active if one.draining), *by_turn[: max(0, len(usable) - size)]],
        aged=aged,
    )


def age_limit(now: datetime, seconds: float) -> datetime:
    """What was made before this is too old at `now`."""
    return now - timedelta(seconds=seconds)


def _is_aged(member: PoolMember, connections: int, older_than: datetime) -> bool:
    return _age(member) <= older_than or member.connections != connections


def _age(member: PoolMember) -> datetime:
    assert member.provisioned_at is not None, "what is active was provisioned"
    return member.provisioned_at
