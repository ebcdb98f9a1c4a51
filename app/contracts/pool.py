"""The warm pool: databases created in advance, which creates claim."""

from abc import ABC, abstractmethod
from datetime import datetime

import msgspec
from temporalio import activity, workflow

from app.contracts.base import Contract


class RefillResult(Contract, frozen=True, kw_only=True):
    """The state of the pools after one refill step."""

    missing: int
    """Databases that are neither ready nor being provisioned."""
    # Histories of 0.1.0 have the names `waits` and `told`.
    retry_soon: bool = msgspec.field(name="waits")
    """More databases can be started in a moment. False when no host has room for them."""
    summary: str = msgspec.field(name="told")
    """The state of every pool, for the operator."""


class VerifyMembers(Contract, frozen=True, kw_only=True):
    region: str
    before: datetime
    """Verify the databases that were last verified before this time, in UTC."""


class PoolActivities(ABC):
    """On our own database. Both take the current time from the workflow."""

    @activity.defn(name="refill_pool")
    @abstractmethod
    async def refill_pool(self, now: datetime) -> RefillResult:
        """Starts missing databases, a few at a time and with a lower priority than creates, and discards those that are
        too old, too many, or on a draining host. Concurrent calls never start more than are wanted."""

    @activity.defn(name="find_unverified")
    @abstractmethod
    async def find_unverified(self, now: datetime) -> list[VerifyMembers]:
        """The regions that have pool databases due for verification."""


class PoolHostActivities(ABC):
    """On the engine hosts of one region."""

    @activity.defn(name="verify_members")
    @abstractmethod
    async def verify_members(self, request: VerifyMembers) -> None:
        """Logs in to databases of the pool with their own credentials, and discards those that refuse. Skips the
        databases of a host that can't be reached, for a while."""


@workflow.defn(name="RefillPool")
class RefillPool(ABC):
    """Fills all pools to their size. Ends when they are full, or at the latest when the next scheduled run is due."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...

    @workflow.signal(name="nudge")
    @abstractmethod
    def nudge(self) -> None:
        """From an API of 0.1.0: a database was claimed, so check the pools again before ending."""
