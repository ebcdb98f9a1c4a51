"""What a pool lacks and what is too much in it: a pure decision over its members."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A database of the pool that is ready or on its way, with its host's state."""

    uuid: UUID
    status: DatabaseStatus
    connections: int
    provisioned_at: datetime | None
    draining: bool
    sick: bool


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    missing: int
    """To be begun."""
    making: int
    """On their way."""
    ready: int
    discard: list[Member]
    aged: list[Member]
    """Ready, oldest first, and to be replaced. They stay until others are ready, so that the pool never runs dry."""


def decide(members: Sequence[Member], size: int, connections: int, older_than: datetime) -> Decision:
    """`connections` is what a member is made with nowadays; those that differ are as good as aged.

    A sick host's members neither count nor go: others take their place, and when the host is well again the oldest
    of all are too many.
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


def _is_aged(member: Member, connections: int, older_than: datetime) -> bool:
    return _age(member) <= older_than or member.connections != connections


def _age(member: Member) -> datetime:
    assert member.provisioned_at is not None, "what is active was provisioned"
    return member.provisioned_at
