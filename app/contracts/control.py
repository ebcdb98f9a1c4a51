"""Activities on our own database. Each is one transaction, which writes the new state and its event together."""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import activity

from app.contracts.base import Contract
from app.contracts.databases import Placement


class HostFailure(Contract, frozen=True, kw_only=True):
    """A failure that a provisioning attempt met on its host."""

    database: UUID
    placement: Placement
    """The place of the failed attempt. A database that has another place by now keeps it: an earlier call moved it, and
    its result was lost."""
    name_taken: bool
    """True when the name belongs to somebody else on that host, so that another name is needed. Otherwise the host
    failed."""
    reason: str


class LimitsApplied(Contract, frozen=True, kw_only=True):
    database: UUID
    revision: int


class GracePeriod(Contract, frozen=True, kw_only=True):
    """How long the data of a deleted database is kept, as its row says now."""

    ends_at: datetime
    """In UTC."""
    remaining_seconds: float
    """By the clock of our own database; 0 when the period is over."""


class ControlActivities(ABC):
    """State changes of databases. All are safe to repeat."""

    @activity.defn(name="replace_host")
    @abstractmethod
    async def replace_host(self, failure: HostFailure) -> Placement:
        """Chooses another place for a provisioning database after a failure on its host, and requests `RemoveRemnant`
        for what may be left on the old one. Returns the same place when no other host has room."""

    @activity.defn(name="abandon_provisioning")
    @abstractmethod
    async def abandon_provisioning(self, database: UUID) -> None:
        """Marks a database whose provisioning was cancelled as deleted, with the event `database.deleted`, unless the
        deletion that cancelled it has done so already."""

    @activity.defn(name="look_at_grace")
    @abstractmethod
    async def get_grace_period(self, database: UUID) -> GracePeriod:
        """Reads the grace period of a deleted database. Fails with `NOT_WANTED` when the database is no longer
        deleted."""

    @activity.defn(name="record_destroyed")
    @abstractmethod
    async def record_destroyed(self, database: UUID) -> None:
        """Records that nothing is left on the host: deletes the stored password and frees the place."""

    @activity.defn(name="record_limits_applied")
    @abstractmethod
    async def record_limits_applied(self, applied: LimitsApplied) -> None: ...
