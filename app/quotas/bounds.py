"""How many of something a team may have, by its tier; exact under concurrent requests in any number of processes."""

from typing import Any

import msgspec

from app.auth.teams import get_team
from app.core.errors import TeamLimitReached, TooManyUnderWay
from app.quotas.plans import Plans
from app.store.session import fetch_scalar


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is counted. The folder that owns the table declares it."""

    resource: str
    """The field of `TierLimits`; refusals name it."""
    counted: str
    """The SQL that selects `count`, with the team as `$1`, then what else `check_bound` is given."""
    refusal: type[TeamLimitReached] | type[TooManyUnderWay]


async def check_bound(plans: Plans, bound: Bound, team_id: int, *also: Any) -> None:
    """Checks that the team may have one more, which is to be written in the same transaction. The team stays locked
    until its end. Raises the bound's refusal."""
    team = await get_team(team_id, lock=True, live=True)
    limit: float = getattr(plans.tiers[team.tier], bound.resource)
    # Counted only now, in a statement of its own: one that waited for the lock would count what was there before.
    if await fetch_scalar(float, bound.counted, team_id, *also) >= limit:
        raise bound.refusal(bound.resource, limit)
