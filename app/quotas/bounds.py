"""How many of something a team may have, by its tier; exact under concurrent requests in any number of processes."""

from typing import Any

import msgspec

from app.auth.teams import get_team
from app.core.errors import TeamLimitReached, TooManyUnderWay
from app.quotas.tiers import TIER_LIMITS, TierLimits
from app.store.session import fetch_scalar


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is counted. The folder that owns the table declares it."""

    resource: str
    """The field of `TierLimits`; refusals name it."""
    counted: str
    """Selects `count`, with the team as `$1` and what else `check_bound` is given."""
    refusal: type[TeamLimitReached] | type[TooManyUnderWay]


async def lock_team(team_id: int) -> TierLimits:
    """What the team's tier allows. The team stays locked until the transaction's end: take it before anything that is
    its own."""
    return TIER_LIMITS[(await get_team(team_id, lock=True)).tier]


async def check_bound(bound: Bound, team_id: int, *also: Any) -> None:
    """Whether the team may have one more, which is to be written in the same transaction. Raises the bound's
    refusal."""
    limit: int = getattr(await lock_team(team_id), bound.resource)
    # Counted only now, in a statement of its own: one that waited for the lock would count what was there before.
    if await fetch_scalar(int, bound.counted, team_id, *also) >= limit:
        raise bound.refusal(bound.resource, limit)
