"""Scheduled work: the ids of all Schedules, and the workflow and activities that delete expired rows."""

from abc import ABC, abstractmethod
from enum import StrEnum

from temporalio import activity, workflow

from app.contracts.base import Contract


class ScheduleId(StrEnum):
    """The id of each Schedule in Temporal. The ids of its runs begin with it."""

    SWEEP = "sweep"
    REFILL_POOL = "refill-pool"
    RECONCILE = "reconcile"
    ENFORCE_QUOTAS = "enforce-quotas"
    RECLAIM_SPACE = "reclaim-space"
    CLOSE_USAGE = "close-usage"


class SweepResult(Contract, frozen=True, kw_only=True):
    removed: int
    """The number of rows."""
    more: bool
    """Rows are left: one step removes a limited number."""


class SweepActivities(ABC):
    """Deleting expired rows. All are safe to repeat."""

    @activity.defn(name="list_sweeps")
    @abstractmethod
    async def list_sweeps(self) -> list[str]:
        """The kinds of rows that are swept, as text, such as `expired idempotency keys`."""

    @activity.defn(name="sweep")
    @abstractmethod
    async def sweep(self, what: str) -> SweepResult:
        """Deletes a limited number of rows of that kind, the oldest first."""


@workflow.defn(name="Sweep")
class Sweep(ABC):
    """Deletes expired rows from our own database, in batches."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...
