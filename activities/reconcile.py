"""Activities that compare our records with themselves and with the engine hosts."""

from datetime import timedelta

from temporalio import activity

from activities.errors import as_failures
from app.contracts.reconcile import HostReconcileActivities, HostRef, ReconcileActivities, ReconcileStep
from app.core.secrets import SecretBox
from app.hosts.adapters import Adapters
from app.quotas.plans import Plans
from app.upkeep.reconcile import service


class ReconcileActivitiesOnStore(ReconcileActivities):
    """Works through `app.upkeep.reconcile`."""

    @activity.defn(name="list_hosts")
    async def list_hosts(self) -> list[HostRef]:
        with as_failures():
            return await service.list_hosts()

    @activity.defn(name="reconcile_records")
    async def reconcile_records(self) -> ReconcileStep:
        with as_failures():
            return await service.reconcile_records(activity.client())


class HostReconcileActivitiesOnHosts(HostReconcileActivities):
    """Works on the registered hosts, through their adapters. `orphan_age` is how long an orphan is only reported; None
    for ever."""

    def __init__(self, plans: Plans, box: SecretBox, adapters: Adapters, orphan_age: timedelta | None) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._orphan_age = orphan_age

    @activity.defn(name="reconcile_host")
    async def reconcile_host(self, host: HostRef) -> ReconcileStep:
        with as_failures():
            return await service.reconcile_host(self._plans, self._box, self._adapters, host, self._orphan_age)
