"""Activities of the warm pool."""

from datetime import datetime

from temporalio import activity

from activities.errors import as_failures
from app.contracts.pool import PoolActivities, PoolHostActivities, RefillResult, VerifyMembers
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases.pool import refill, verification
from app.hosts.adapters import Adapters
from app.quotas.plans import Plans


class PoolActivitiesOnStore(PoolActivities):
    """Works through `app.databases.pool.refill`."""

    def __init__(self, plans: Plans, box: SecretBox, settings: Settings) -> None:
        self._plans = plans
        self._box = box
        self._settings = settings

    @activity.defn(name="refill_pool")
    async def refill_pool(self, now: datetime) -> RefillResult:
        with as_failures():
            return await refill.refill(self._plans, self._box, self._settings, now)

    @activity.defn(name="find_unverified")
    async def find_unverified(self, now: datetime) -> list[VerifyMembers]:
        with as_failures():
            return await refill.find_unverified(self._settings, now)


class PoolActivitiesOnHosts(PoolHostActivities):
    """Works on the registered hosts, through their adapters."""

    def __init__(self, box: SecretBox, adapters: Adapters) -> None:
        self._box = box
        self._adapters = adapters

    @activity.defn(name="verify_members")
    async def verify_members(self, request: VerifyMembers) -> None:
        with as_failures():
            await verification.verify(self._box, self._adapters, request.region, request.before)
