"""Activities that delete expired rows from our own database."""

from temporalio import activity

from activities.errors import as_failures
from app.contracts.upkeep import SweepActivities, SweepResult
from app.upkeep import sweep as service
from app.upkeep.sweep import Retention


class SweepActivitiesOnStore(SweepActivities):
    """Works through `app.upkeep.sweep`."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention

    @activity.defn(name="list_sweeps")
    async def list_sweeps(self) -> list[str]:
        return service.list_kinds()

    @activity.defn(name="sweep")
    async def sweep(self, what: str) -> SweepResult:
        with as_failures():
            return await service.sweep(what, self._retention)
