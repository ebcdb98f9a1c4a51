"""Activities that change a database's state in our own database."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.backups.restores.sources import hosts_for
from app.contracts.control import ControlActivities, GracePeriod, HostFailure, LimitsApplied
from app.contracts.databases import Placement
from app.databases import deletion, limits
from app.provisioning import lifecycle, replacing
from app.quotas.plans import Plans
from app.upkeep.destruction import record_destruction


class ControlActivitiesOnStore(ControlActivities):
    """Works through `app.databases` and `app.provisioning`."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    @activity.defn(name="replace_host")
    async def replace_host(self, failure: HostFailure) -> Placement:
        with as_failures():
            return await replacing.replace_host(failure, await hosts_for(failure.database))

    @activity.defn(name="abandon_provisioning")
    async def abandon_provisioning(self, database: UUID) -> None:
        with as_failures():
            await lifecycle.abandon_provisioning(self._plans, database)

    @activity.defn(name="look_at_grace")
    async def get_grace_period(self, database: UUID) -> GracePeriod:
        with as_failures():
            return await deletion.get_grace_period(database)

    @activity.defn(name="record_destroyed")
    async def record_destroyed(self, database: UUID) -> None:
        with as_failures():
            await record_destruction(self._plans, database)

    @activity.defn(name="record_limits_applied")
    async def record_limits_applied(self, applied: LimitsApplied) -> None:
        with as_failures():
            await limits.record_limits_applied(applied.database, applied.revision)
