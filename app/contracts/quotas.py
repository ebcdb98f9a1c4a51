"""Measuring what databases use, and enforcing what their plans allow."""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.base import Contract


class MeasureRegion(Contract, frozen=True, kw_only=True):
    region: str
    at: datetime
    """The moment that the samples count as taken at, in UTC. The same again for a repeated attempt, which then counts
    no time twice."""


class RegionMeasurement(Contract, frozen=True, kw_only=True):
    databases: int
    moves: dict[str, int]
    """How many were `warned`, `frozen`, `thawed`, `resumed`, `paused_runtime` and `paused_storage`; and
    `ended_overdue`, statements of questions that outlived the process that asked."""
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
        """Those that have engine hosts."""

    @activity.defn(name="follow_plans")
    @abstractmethod
    async def follow_plans(self) -> int:
        """Asks for the connection limits of databases whose plan was changed; returns how many there were."""

    @activity.defn(name="list_frozen")
    @abstractmethod
    async def list_frozen(self) -> list[FrozenDatabase]:
        """Some of the frozen databases of each region, those first for which nothing has been reclaimed longest: their
        deletions may have left space to give back."""


class QuotaHostActivities(ABC):
    """On the engine hosts of one region."""

    @activity.defn(name="measure_region")
    @abstractmethod
    async def measure_region(self, request: MeasureRegion) -> RegionMeasurement:
        """Measures storage and use of every database, records it, and makes the moves that follow: each in one
        transaction with its event and the workflow that brings it to the engine. Ends what questions left running. A
        host that doesn't answer in time costs the others nothing, and neither does a database on its host."""

    @activity.defn(name="reclaim_space")
    @abstractmethod
    async def reclaim_space(self, database: UUID) -> None:
        """Gives back what deletions left inside a frozen database's tables. Does nothing to one that isn't frozen."""


@workflow.defn(name="EnforceQuotas")
class EnforceQuotas(ABC):
    """Holds every database to its plan: storage, and hours of use."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...


@workflow.defn(name="ReclaimSpace")
class ReclaimSpace(ABC):
    """Gives back the space that deletions left in frozen databases: apart from their measurement, which never waits for
    what a tenant makes slow."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...
