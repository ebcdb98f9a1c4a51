"""The workflows of a database's life: their names, inputs and results.

The classes are interfaces. Whoever starts one names it through here; `workflows/` holds what they do.
"""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import workflow

from app.contracts.base import Contract, Engine, WorkflowInput


class DatabaseWorkflowInput(WorkflowInput, frozen=True, kw_only=True):
    """What every workflow about one database is told: enough to find it and to route to its region."""

    database: UUID
    engine: Engine
    region: str
    team_id: int | None
    """None for one of the warm pool."""


class Placement(Contract, frozen=True, kw_only=True):
    """Where a database is being made."""

    host_id: int
    address: str
    """The host's `host:port`, for people."""
    name: str
    """Of the database and its role there."""


class ProvisionDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """Credentials and limits are read from our own database by the activities."""

    placement: Placement
    """Where it was placed at first, or, where a run goes on for one with a long history, last."""
    round: int = 0
    """Rounds of attempts that have failed in this place."""
    cancelled: bool = False
    """What was made is to be removed."""


ROW_CHANGED = "look_again"
"""The signal to `DeleteDatabase` that its row was changed: the data goes earlier or later, or is not to go at all."""


class DeleteDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    destroy_at: datetime
    """End of the grace period when the deletion was asked for, in UTC. From then on the row decides."""
    cancel_provisioning: bool
    """A provisioning was still under way when the deletion was asked for."""


class ApplyLimitsInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    revision: int
    """The change of limits that asked for this run. What is applied is the newest."""


class ApplyAccessInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    revision: int
    """The change of access that asked for this run. What is applied is the newest."""


class RemoveRemnantInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    host_id: int
    """The host that provisioning gave up on, and where parts of the database may lie."""
    name: str
    """The name of those parts there."""


@workflow.defn(name="ProvisionDatabase")
class ProvisionDatabase(ABC):
    """Makes a database and proves it by logging in. Never fails: it waits, moves on, or is cancelled."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ProvisionDatabaseInput) -> None: ...


@workflow.defn(name="DeleteDatabase")
class DeleteDatabase(ABC):
    """Ends all access at once, keeps the data until the time that the row has, then destroys it. It ends without that
    when the database is undeleted. The signal `ROW_CHANGED` has it read the row anew."""

    @workflow.run
    @abstractmethod
    async def run(self, request: DeleteDatabaseInput) -> None: ...


@workflow.defn(name="ApplyLimits")
class ApplyLimits(ABC):
    """Brings a changed limit to the engine."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyLimitsInput) -> None: ...


@workflow.defn(name="ApplyAccess")
class ApplyAccess(ABC):
    """Brings a pause, a resumption, a freeze or a thaw to the engine."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyAccessInput) -> None: ...


@workflow.defn(name="RemoveRemnant")
class RemoveRemnant(ABC):
    """Clears what a failed attempt left on a host that was given up on, once that host is back."""

    @workflow.run
    @abstractmethod
    async def run(self, request: RemoveRemnantInput) -> None: ...
