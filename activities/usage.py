"""Activities on the ledger of usage."""

from datetime import timedelta

from temporalio import activity

from activities.errors import as_failures
from app.contracts.usage import ClosedPeriods, UsageActivities
from app.usage import closing


class UsageActivitiesOnStore(UsageActivities):
    """Works through `app.usage`."""

    def __init__(self, period_seconds: int, keep: timedelta) -> None:
        self._period_seconds = period_seconds
        self._keep = keep

    @activity.defn(name="close_usage")
    async def close_usage(self) -> ClosedPeriods:
        with as_failures():
            return await closing.close(self._period_seconds, self._keep)
