"""Activities that enforce plans."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.contracts.base import DatabaseStatus
from app.contracts.quotas import FrozenDatabase, MeasureRegion, QuotaActivities, QuotaHostActivities, RegionMeasurement
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases import records
from app.databases.passwords import tenant_of
from app.engines.base import SessionLimits
from app.hosts.adapters import Adapters
from app.hosts.records import served_regions
from app.provisioning import enforcement
from app.provisioning.plan_changes import follow_plans
from app.quotas import reclaiming
from app.quotas.plans import Plans
from app.store.locks import database_lock

_GAP_INTERVALS, _GAP_SECONDS = 3.0, 10.0
"""The longest time that one sample counts for: two runs are at most two intervals apart, and one may be missed.
Longer gaps are our own downtime, which counts for nobody."""
_OVERDUE_SECONDS = 30.0
"""Added to the timeout of a question's statement, which the process that runs it enforces while it lives."""


class QuotaActivitiesOnStore(QuotaActivities):
    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    @activity.defn(name="list_regions")
    async def list_regions(self) -> list[str]:
        with as_failures():
            return await served_regions()

    @activity.defn(name="follow_plans")
    async def follow_plans(self) -> int:
        with as_failures():
            return await follow_plans(self._plans)

    @activity.defn(name="list_frozen")
    async def list_frozen(self) -> list[FrozenDatabase]:
        with as_failures():
            return await reclaiming.list_frozen()


class QuotaActivitiesOnHosts(QuotaHostActivities):
    """The activities of quotas on the hosts of a region."""

    def __init__(self, plans: Plans, box: SecretBox, adapters: Adapters, settings: Settings) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._sessions = SessionLimits(
            idle_transaction_seconds=settings.session_idle_transaction_seconds,
            transaction_seconds=settings.session_transaction_seconds,
            memory_bytes=settings.session_memory_mb * 2**20,
            shared_percent=settings.session_shared_percent,
        )
        self._overdue = settings.query_timeout_seconds + _OVERDUE_SECONDS
        self._longest_gap = _GAP_INTERVALS * settings.quota_interval_seconds + _GAP_SECONDS

    @activity.defn(name="measure_region")
    async def measure_region(self, request: MeasureRegion) -> RegionMeasurement:
        with as_failures():
            return await enforcement.measure_region(
                self._plans,
                self._adapters,
                request.region,
                request.at,
                longest_gap=self._longest_gap,
                overdue=self._overdue,
                sessions=self._sessions,
            )

    @activity.defn(name="reclaim_space")
    async def reclaim_space(self, database: UUID) -> None:
        with as_failures():
            async with reclaiming.turn(database), database_lock(database):
                record = await records.find(database)
                if record is None or record.status is not DatabaseStatus.ACTIVE or record.frozen_at is None:
                    return
                adapter = await self._adapters.of_host(record.host_id)
                await adapter.reclaim(tenant_of(record, self._box))
