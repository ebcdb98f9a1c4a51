"""The warm pool: databases made ahead, for creates to claim."""

from abc import ABC, abstractmethod
from datetime import datetime

import msgspec
from temporalio import activity, workflow

from app.contracts.base import Contract


class RefillResult(Contract, frozen=True, kw_only=True):
    """What one pass over the pools left to do."""

    missing: int
    """Databases that are neither ready nor being provisioned."""
    retry_soon: bool = msgspec.field(name="waits")
    """Some of the missing ones can be started in a moment. Otherwise no host has room for them."""
    summary: str = msgspec.field(name="told")
    """The state of every pool, for the operator."""


class VerifyMembers(Contract, frozen=True, kw_only=True):
    region: str
    before: datetime
    """Those whose last proof is older than this, in UTC."""


class PoolActivities(ABC):
    """On our own database. Both take the present time from the workflow."""

    @activity.defn(name="refill_pool")
    @abstractmethod
    async def refill_pool(self, now: datetime) -> RefillResult:
        """Begins what the pools lack, a few at a time and after the creates that somebody waits for, and throws away
        what is too old, too much, or on a host that is being emptied. Two at once never make more than is wanted."""

    @activity.defn(name="find_unverified")
    @abstractmethod
    async def find_unverified(self, now: datetime) -> list[VerifyMembers]:
        """Where databases of the pools have not been tried for a while, a region each."""


class PoolHostActivities(ABC):
    """On the engine hosts of one region."""

    @activity.defn(name="verify_members")
    @abstractmethod
    async def verify_members(self, request: VerifyMembers) -> None:
        """Logs in to databases of the pool with their own credentials, and throws away those that refuse. A host that
        can't be reached is passed over for a while, and its databases with it."""


@workflow.defn(name="RefillPool")
class RefillPool(ABC):
    """Brings all pools to their size. Ends when they are, or when that takes longer than to the next scheduled run."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...

    @workflow.signal(name="nudge")
    @abstractmethod
    def nudge(self) -> None:
        """A database was claimed: look again before ending."""
