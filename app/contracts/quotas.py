"""Measuring what databases use, and enforcing their plans' limits."""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.base import Contract


class MeasureRegion(Contract, frozen=True, kw_only=True):
    region: str
    at: datetime
    """The time of the samples, in UTC. A repeated attempt gets the same time, so that no interval counts twice."""


class RegionMeasurement(Contract, frozen=True, kw_only=True):
    databases: int
    moves: dict[str, int]
    """How many databases were `warned`, `frozen`, `thawed`, `resumed`, `paused_runtime` and `paused_storage`. Also
    `ended_overdue`: statements of questions that outlived the API process that ran them."""
    unreachable: tuple[str, ...]
    """Hosts that were not measured, as `host:port`."""


class FrozenDatabase(Contract, frozen=True, kw_only=True):
    region: str
    database: UUID


class QuotaActivities(ABC):
    """On our own database."""

    @activity.defn(name="list_regions")
    @abstractmethod
    async def list_regions(self) -> list[str]:
        """The regions that have engine hosts."""

    @activity.defn(name="follow_plans")
    @abstractmethod
    async def follow_plans(self) -> int:
        """Requests new connection limits for databases whose plan was changed, as far as their hosts have room; returns
        how many."""

    @activity.defn(name="list_frozen")
    @abstractmethod
    async def list_frozen(self) -> list[FrozenDatabase]:
        """Some frozen databases of each region, those first whose space was reclaimed longest ago: deletions may have
        freed space since."""


class QuotaHostActivities(ABC):
    """On the engine hosts of one region."""

    @activity.defn(name="measure_region")
    @abstractmethod
    async def measure_region(self, request: MeasureRegion) -> RegionMeasurement:
        """Measures storage and use of every database, records them, and makes the changes that follow. Each change is
        one transaction with its event and the workflow that applies it on the engine. Also ends statements that
        questions left running. A slow host or database doesn't delay the others."""

    @activity.defn(name="reclaim_space")
    @abstractmethod
    async def reclaim_space(self, database: UUID) -> None:
        """Returns the space of deleted rows inside a frozen database's tables to the disk. Does nothing when it isn't
        frozen."""


@workflow.defn(name="EnforceQuotas")
class EnforceQuotas(ABC):
    """Enforces the plans' limits on storage and on hours of use."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...


@workflow.defn(name="ReclaimSpace")
class ReclaimSpace(ABC):
    """Returns the space of deleted rows in frozen databases to the disk. Separate from `EnforceQuotas`, so that a slow
    tenant never delays the measurement."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...
