"""Activities on our own database. Each is one transaction: the state and the event that tells of it."""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import activity

from app.contracts.base import Contract
from app.contracts.databases import Placement


class HostFailure(Contract, frozen=True, kw_only=True):
    """What a provisioning attempt met on its host."""

    database: UUID
    placement: Placement
    """Where the attempt was made. A database that is placed elsewhere by now stays there: it was moved before,
    and the answer was lost."""
    name_taken: bool
    """The name is a stranger's there: take another name. Otherwise the host is sick."""
    reason: str


class LimitsApplied(Contract, frozen=True, kw_only=True):
    database: UUID
    revision: int


class GracePeriod(Contract, frozen=True, kw_only=True):
    """How long the data of a deleted database is kept, as its row has it now."""

    ends_at: datetime
    """In UTC."""
    remaining_seconds: float
    """By the clock of our own database; 0 when it is over."""


class ControlActivities(ABC):
    """State changes of databases. All are safe to repeat: a change that was made is made."""

    @activity.defn(name="replace_host")
    @abstractmethod
    async def replace_host(self, failure: HostFailure) -> Placement:
        """Places a provisioning database anew after a failure on its host, and has `RemoveRemnant` clear what may
        lie there. The place stays the same when there is no other."""

    @activity.defn(name="abandon_provisioning")
    @abstractmethod
    async def abandon_provisioning(self, database: UUID) -> None:
        """Marks a database whose provisioning was cancelled as deleted, with `database.deleted`, unless the
        deletion that cancelled it has done so."""

    @activity.defn(name="look_at_grace")
    @abstractmethod
    async def get_grace_period(self, database: UUID) -> GracePeriod:
        """Reads the grace period of a deleted database. Fails with `NOT_WANTED` when it is not deleted any more."""

    @activity.defn(name="record_destroyed")
    @abstractmethod
    async def record_destroyed(self, database: UUID) -> None:
        """Nothing is left on the host; the password is forgotten and the place is free."""

    @activity.defn(name="record_limits_applied")
    @abstractmethod
    async def record_limits_applied(self, applied: LimitsApplied) -> None: ...
