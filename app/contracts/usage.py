"""Closing the periods of the ledger of usage."""

from abc import ABC, abstractmethod
from datetime import datetime

from temporalio import activity, workflow

from app.contracts.base import Contract


class ClosedPeriods(Contract, frozen=True, kw_only=True):
    through: datetime | None
    """The moment through which everything is closed; None where nothing was closed this time."""
    rows: int
    """How many the ledger got."""


class UsageActivities(ABC):
    """On our own database."""

    @activity.defn(name="close_usage")
    @abstractmethod
    async def close_usage(self) -> ClosedPeriods:
        """Closes the periods that are over, if nothing that may count in them is still under way. Safe to repeat."""


@workflow.defn(name="CloseUsage")
class CloseUsage(ABC):
    """Closes the ledger's periods."""

    @workflow.run
    @abstractmethod
    async def run(self) -> None: ...
