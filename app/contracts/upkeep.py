"""The work that nobody asks for: workflows that run on a Schedule, and their activities on our own database."""

from abc import ABC, abstractmethod
from enum import StrEnum

from temporalio import activity, workflow

from app.contracts.base import Contract


class ScheduleId(StrEnum):
    """Of each Schedule in Temporal. The ids of its runs begin with it."""

    SWEEP = "sweep"
    REFILL_POOL = "refill-pool"
    RECONCILE = "reconcile"
    ENFORCE_QUOTAS = "enforce-quotas"
    RECLAIM_SPACE = "reclaim-space"


class SweepResult(Contract, frozen=True, kw_only=True):
    removed: int
    """Rows."""
    more: bool
    """There was more of it than one step removes."""


class SweepActivities(ABC):
    """Removing what has had its time. All are safe to repeat."""

    @activity.defn(name="list_sweeps")
    @abstractmethod
    async def list_sweeps(self) -> list[str]:
        """What can be swept, in words, such as `expired idempotency keys`."""

    @activity.defn(name="sweep")
    @abstractmethod
    async def sweep(self, what: str) -> SweepResult:
        """Removes a bounded number of rows of that kind, the oldest first."""


@workflow.defn(name="Sweep")
class Sweep(ABC):
    """Removes what has had its time from our own database, in batches."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...
